import { statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Effect } from "effect"
import type { Log } from "../../core/services/log.ts"
import type { Workers } from "../../core/services/workers.ts"
import type { OwnCountInput } from "./own-count-job.ts"
import { failure, type UpstreamFailure } from "./upstream/failure.ts"

/** Counts tokens of texts as the model behind the upstreams does. */
export interface OwnCounter {
  /** The tokens of each text; undefined where the thread pool has no time for it. */
  count(texts: readonly string[]): Effect.Effect<readonly number[] | undefined>
}

/**
 * How many tokens there can be, by an own count: the texts are counted exactly, and what templates
 * add is not known. `likely` is charged where a report is missing or outside.
 */
export interface CountRange {
  readonly least: number
  readonly likely: number
  readonly most: number
}

/** The tokens that are charged, and whether the report was wrong. */
export const judged = (
  reported: number | undefined,
  { least, likely, most }: CountRange,
): { readonly tokens: number; readonly isWrong: boolean } => {
  const isWrong = reported === undefined || reported < least || reported > most
  return { tokens: isWrong ? likely : reported, isWrong }
}

/** A call waits no longer than this for a count. */
const patienceMs = 5_000

/** What an entry was pulled to may be one file: then names are those of files beside it. */
const fileOf = (tokenizer: string, pulled: string): string => {
  const isFile = pulled !== "" && statSync(pulled).isFile()
  const path = resolve(isFile ? dirname(pulled) : pulled, tokenizer)
  return statSync(path).isDirectory() ? join(path, "tokenizer.json") : path
}

const jobModule = new URL(
  import.meta.url.endsWith(".ts") ? "./own-count-job.ts" : "./own-count-job.js",
  import.meta.url,
)

/** `tokenizer`: a file or its folder, absolute or below what the entry was `pulled` to. Fails where it can't be read. */
export const openOwnCounter = (
  tokenizer: string,
  pulled: string,
  { workers, log }: { readonly workers: Workers; readonly log: Log },
): Effect.Effect<OwnCounter, UpstreamFailure> => {
  const unread = (reason: string) =>
    failure("misplaced", `its tokenizer ${tokenizer} can't be read: ${reason}`)
  return Effect.gen(function* () {
    const file = yield* Effect.try({
      try: () => fileOf(tokenizer, pulled),
      catch: (cause) => unread(String((cause as NodeJS.ErrnoException).code)),
    })
    const run = (texts: readonly string[]) =>
      workers.run<OwnCountInput, readonly number[]>(jobModule, { file, texts }, patienceMs)
    yield* Effect.mapError(
      workers.run<OwnCountInput, readonly number[]>(jobModule, { file, texts: ["a"] }),
      ({ message }) => unread(message),
    )
    const gaveUp = (reason: string) => {
      log.warn("upstream.count_failed", "tokens could not be counted here", { reason })
      return undefined
    }
    return {
      count: (texts: readonly string[]) =>
        run(texts).pipe(
          Effect.timeoutOrElse({
            duration: patienceMs,
            orElse: () => Effect.sync(() => gaveUp("the thread pool is busy")),
          }),
          Effect.catch(({ message }) => Effect.sync(() => gaveUp(message))),
        ),
    }
  })
}
