import { createReadStream } from "node:fs"
import { Stream } from "effect"
import { type BatchFileRefused, fileRefused } from "./refused.ts"

const chunkBytes = 262_144

/** A file's bytes from offset `start` on. */
export const fileBytes = (path: string, start = 0): Stream.Stream<Uint8Array, BatchFileRefused> =>
  Stream.suspend(() =>
    Stream.fromAsyncIterable(
      createReadStream(path, { start, highWaterMark: chunkBytes }) as AsyncIterable<Uint8Array>,
      (cause) => fileRefused(path, "read", cause),
    ),
  )
