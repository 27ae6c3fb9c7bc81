import { Effect, Stream } from "effect"
import type { BlobMissing, PortError, Storage, StorageError } from "../../../core/index.ts"

const newline = 0x0a

export interface LineCount {
  readonly bytes: number
  readonly lines: number
}

/** Narrows the errors of a store to those of reading. */
export const readErrors = (error: StorageError): Effect.Effect<never, BlobMissing | PortError> =>
  error._tag === "BlobMissing" || error._tag === "PortError"
    ? Effect.fail(error)
    : Effect.die(error)

/** Counts bytes and lines of a blob, with one chunk in memory at a time. */
export const countLines = (
  storage: Storage,
  key: string,
): Effect.Effect<LineCount, BlobMissing | PortError> =>
  Stream.runFold(
    storage.get(key),
    (): LineCount => ({ bytes: 0, lines: 0 }),
    ({ bytes, lines }, piece) => {
      let found = lines
      for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, at + 1)) found++
      return { bytes: bytes + piece.byteLength, lines: found }
    },
  ).pipe(Effect.catch(readErrors))
