import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import type { GgmlType } from "./ggml-types.ts"
import { Damaged, explaining, ModelFileError } from "./model-file-error.ts"

export interface TensorEntry {
  readonly name: string
  readonly type: GgmlType
  /** Values of a row, which are contiguous; the inputs of the matrix. */
  readonly columns: number
  readonly rows: number
  /** Where a tensor has three dimensions, rows of each of the matrices that are its rows here. */
  readonly matrixRows?: number
  /** Offset in bytes from the file's start. */
  readonly offset: number
  readonly bytes: number
}

export interface TensorHeader {
  readonly tensors: ReadonlyMap<string, TensorEntry>
}

/**
 * Tensors by name, in one file or several. Rows are read from disk on demand: the model is never in
 * memory as a whole. Blocks the thread: for workers only.
 */
export interface TensorSource {
  /** Path of the file or folder. */
  readonly path: string
  names(): Iterable<string>
  has(name: string): boolean
  /** Throws `Damaged` when the tensor is missing. */
  tensor(name: string): TensorEntry
  /** Returns the encoded bytes of `count` rows. */
  rows(entry: TensorEntry, first: number, count: number): Buffer
  close(): void
}

/** Reads `length` bytes from a position, or throws `Damaged`. */
export type ReadAt = (position: number, length: number) => Buffer

const readExactly = (handle: number, position: number, length: number): Buffer => {
  const bytes = Buffer.allocUnsafe(length)
  let done = 0
  while (done < length) {
    const count = readSync(handle, bytes, done, length - done, position + done)
    if (count === 0) throw new Damaged(`it is cut: byte ${position + length} is past its end`)
    done += count
  }
  return bytes
}

const openHandle = (path: string): number => {
  try {
    return openSync(path, "r")
  } catch (cause) {
    throw new ModelFileError(path, `can't be opened (${(cause as Error).message})`)
  }
}

export class TensorFile<Header extends TensorHeader = TensorHeader> implements TensorSource {
  readonly path: string
  readonly header: Header
  private readonly handle: number

  private constructor(path: string, header: Header, handle: number) {
    this.path = path
    this.header = header
    this.handle = handle
  }

  static open<Header extends TensorHeader>(
    path: string,
    readHeader: (read: ReadAt, fileBytes: number) => Header,
  ): TensorFile<Header> {
    const handle = openHandle(path)
    try {
      const stat = fstatSync(handle)
      if (!stat.isFile()) throw new Damaged("this is not a file")
      return new TensorFile(
        path,
        readHeader((position, length) => readExactly(handle, position, length), stat.size),
        handle,
      )
    } catch (cause) {
      closeSync(handle)
      throw cause instanceof Damaged ? new ModelFileError(path, cause.message, cause.remedy) : cause
    }
  }

  /** Runs `part` and adds the file's name to what it throws. */
  explain<A>(part: () => A): A {
    return explaining(this.path, part)
  }

  names(): Iterable<string> {
    return this.header.tensors.keys()
  }

  has(name: string): boolean {
    return this.header.tensors.has(name)
  }

  tensor(name: string): TensorEntry {
    const entry = this.header.tensors.get(name)
    if (!entry) throw new Damaged(`the tensor '${name}' is missing`)
    return entry
  }

  rows(entry: TensorEntry, first: number, count: number): Buffer {
    const rowBytes = entry.bytes / entry.rows
    return readExactly(this.handle, entry.offset + first * rowBytes, count * rowBytes)
  }

  close(): void {
    closeSync(this.handle)
  }
}
