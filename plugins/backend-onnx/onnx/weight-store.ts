import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs"

/** Position of a tensor in the file of external data. */
export interface StoredWeights {
  readonly offset: number
  readonly bytes: number
}

/** Regions begin at multiples of it, in bytes. */
export const regionAlignment = 64

/** A large page of memory. */
const pageBytes = 2 ** 21

/**
 * Writes ONNX external data. Regions are reserved first and filled in any order, so that a
 * converter holds only a few rows. Blocks the thread: for workers only.
 */
export class WeightStore {
  readonly fileName: string
  private readonly handle: number
  private readonly zeros = new Uint8Array(pageBytes)
  private end = 0
  private pagesEnd = pageBytes

  constructor(folder: string, fileName: string) {
    this.fileName = fileName
    this.handle = openSync(`${folder}/${fileName}`, "wx")
  }

  /** Bytes of the file, with all that is reserved. */
  get size(): number {
    return this.end
  }

  reserve(bytes: number): StoredWeights {
    const offset = this.end
    this.end = Math.ceil((offset + bytes) / regionAlignment) * regionAlignment
    return { offset, bytes }
  }

  write(region: StoredWeights, at: number, values: ArrayBufferView): void {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
    this.writePages(region.offset + at + bytes.length)
    this.writeAt(region.offset + at, bytes)
  }

  /**
   * Writes zeros by large pages, up to `end` at least: Linux keeps in one piece of its cache, which a
   * session maps, what one call has written. Not in the first page, as small files have no other.
   */
  private writePages(end: number): void {
    for (; this.pagesEnd < end; this.pagesEnd += pageBytes) this.writeAt(this.pagesEnd, this.zeros)
  }

  private writeAt(position: number, bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; )
      done += writeSync(this.handle, bytes, done, bytes.length - done, position + done)
  }

  close(): void {
    try {
      ftruncateSync(this.handle, this.end)
    } finally {
      closeSync(this.handle)
    }
  }
}
