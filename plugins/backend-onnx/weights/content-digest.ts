import { createHash } from "node:crypto"
import { closeSync, fstatSync, openSync, readSync } from "node:fs"

const chunkBytes = 4 * 2 ** 20

export interface Content {
  readonly bytes: number
  readonly sha256: string
}

/** Computes the SHA-256 of a file. Blocks the thread: for workers only. */
export const contentOf = (
  path: string,
  progress: (readBytes: number, ofBytes: number) => void = () => {},
): Content => {
  const handle = openSync(path, "r")
  try {
    const { size } = fstatSync(handle)
    const hash = createHash("sha256")
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(1, size)))
    let bytes = 0
    for (;;) {
      const count = readSync(handle, chunk, 0, chunk.length, bytes)
      if (count === 0) break
      hash.update(chunk.subarray(0, count))
      bytes += count
      progress(bytes, size)
    }
    return { bytes, sha256: hash.digest("hex") }
  } finally {
    closeSync(handle)
  }
}
