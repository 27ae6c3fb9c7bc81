import { closeSync, openSync, writeSync } from "node:fs"

/** Position of a tensor in the file of external data. */
export interface StoredWeights {
  readonly offset: number
  readonly bytes: number
}

const alignment = 64

/**
 * Writes ONNX external data. Regions are reserved first and filled in any order, so that a
 * converter holds only a few rows. Blocks the thread: for workers only.
 */
export class WeightStore {
  readonly fileName: string
  private readonly handle: number
  private end = 0

  constructor(folder: string, fileName: string) {
    this.fileName = fileName
    this.handle = openSync(`${folder}/${fileName}`, "wx")
  }

  reserve(bytes: number): StoredWeights {
    const offset = this.end
    this.end = Math.ceil((offset + bytes) / alignment) * alignment
    return { offset, bytes }
  }

  write(region: StoredWeights, at: number, values: ArrayBufferView): void {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
    for (let done = 0; done < bytes.length; )
      done += writeSync(this.handle, bytes, done, bytes.length - done, region.offset + at + done)
  }

  close(): void {
    closeSync(this.handle)
  }
}
