import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { BytesMissing } from "./byte-cursor.ts"
import { type GgufHeader, parseGgufHeader, type TensorEntry } from "./gguf-header.ts"
import { Damaged } from "./gguf-metadata.ts"
import { ModelFileError } from "./model-file-error.ts"

const firstReadBytes = 4 * 2 ** 20
const maxHeaderBytes = 512 * 2 ** 20

/** An open GGUF file. Tensors are read from disk when they are asked for: the model is never in memory as a whole. Blocks: for worker threads only. */
export class GgufFile {
  readonly path: string
  readonly header: GgufHeader
  private readonly handle: number

  private constructor(path: string, header: GgufHeader, handle: number) {
    this.path = path
    this.header = header
    this.handle = handle
  }

  static open(path: string): GgufFile {
    let handle: number
    try {
      handle = openSync(path, "r")
    } catch (cause) {
      throw new ModelFileError(path, `can't be opened (${(cause as Error).message})`)
    }
    try {
      return new GgufFile(path, readHeader(handle), handle)
    } catch (cause) {
      closeSync(handle)
      throw new ModelFileError(path, (cause as Error).message)
    }
  }

  /** Runs a part that looks into the file and names the file when it fails. */
  explain<A>(part: (file: GgufFile) => A): A {
    try {
      return part(this)
    } catch (cause) {
      if (cause instanceof Damaged) throw new ModelFileError(this.path, cause.message)
      throw cause
    }
  }

  tensor(name: string): TensorEntry {
    const entry = this.header.tensors.get(name)
    if (!entry) throw new Damaged(`the tensor '${name}' is missing`)
    return entry
  }

  /** The encoded bytes of `count` rows. */
  rows(entry: TensorEntry, first: number, count: number): Buffer {
    const rowBytes = entry.bytes / entry.rows
    return readExactly(this.handle, entry.offset + first * rowBytes, count * rowBytes)
  }

  close(): void {
    closeSync(this.handle)
  }
}

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

const readHeader = (handle: number): GgufHeader => {
  const stat = fstatSync(handle)
  if (!stat.isFile()) throw new Damaged("this is not a file")
  let length = Math.min(stat.size, firstReadBytes)
  for (;;) {
    try {
      return parseGgufHeader(readExactly(handle, 0, length), stat.size)
    } catch (cause) {
      if (!(cause instanceof BytesMissing)) throw cause
      if (cause.needed > stat.size) throw new Damaged(`it is cut: the header needs ${cause.needed} bytes, the file has ${stat.size}`)
      if (cause.needed > maxHeaderBytes) throw new Damaged(`the header is larger than ${maxHeaderBytes} bytes`)
      length = Math.min(stat.size, Math.max(length * 4, cause.needed))
    }
  }
}
