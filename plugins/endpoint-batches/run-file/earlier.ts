import { stat } from "node:fs/promises"
import { Effect, Stream } from "effect"
import { jsonLines, type RawLine } from "../input/json-lines.ts"
import { fileBytes } from "./file-bytes.ts"
import { type BatchFileRefused, notRegular, onFile, refused } from "./refused.ts"

/** The results of an earlier run in one of its two files, in order of the input. */
export interface Earlier {
  readonly path: string
  readonly ids: readonly string[]
  /** Byte offset of the end of each result. */
  readonly ends: readonly number[]
}

/** A longer line is no result of ours. */
const maxLineBytes = 268_435_456

// custom_id is near the beginning, so that an answer of megabytes need not be parsed
const ours = /^\{"id":"batch_req_\w+","custom_id":("(?:[^"\\]|\\.){1,4000}")/
const beginning = '{"id":"batch_req_'

const isWhole = ({ offset, end, text = "" }: RawLine): boolean =>
  Buffer.byteLength(text) < end - offset
const isBegun = ({ text = "" }: RawLine): boolean =>
  text.startsWith(beginning) || beginning.startsWith(text)

const idOf = (raw: RawLine): string | undefined => {
  const quoted = isWhole(raw) ? ours.exec(raw.text ?? "")?.[1] : undefined
  return quoted === undefined ? undefined : (JSON.parse(quoted) as string)
}

export const sizeOf = (path: string): Effect.Effect<number | undefined, BatchFileRefused> =>
  Effect.flatMap(
    onFile(path, "read", () =>
      stat(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined
        throw error
      }),
    ),
    (found) =>
      found && !found.isFile() ? Effect.fail(notRegular(path, found)) : Effect.succeed(found?.size),
  )

/**
 * Reads the results in a file, up to where a crash has cut it. Fails on a file of anything else.
 */
export const readEarlier = (path: string): Effect.Effect<Earlier, BatchFileRefused> =>
  Effect.gen(function* () {
    const ids: string[] = []
    const ends: number[] = []
    if ((yield* sizeOf(path)) === undefined) return { path, ids, ends }
    let foreign: number | undefined
    yield* Stream.runForEachWhile(jsonLines(fileBytes(path), { maxLineBytes }), (raw) =>
      Effect.sync(() => {
        const id = idOf(raw)
        if (id === undefined) {
          if (ids.length === 0 && !isBegun(raw)) foreign = raw.line
          return false
        }
        ids.push(id)
        ends.push(raw.end)
        return true
      }),
    )
    if (foreign !== undefined)
      return yield* refused(
        `${path} holds no results of a batch (line ${foreign}). Name another file, or remove it.`,
      )
    return { path, ids, ends }
  })
