import { statSync } from "node:fs"
import { join } from "node:path"
import type { Effect } from "effect"
import type { ApiError } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import type { EmbedTexts, EmbedTextsRequest } from "./embed-texts.ts"
import embedTextsJob, { type EmbedTextsInput, tokenizerIn } from "./embed-texts-job.ts"
import { inPool, inThisThread } from "./pool.ts"

const job = "embed-texts-job"

/**
 * A WordPiece vocabulary of this size is loaded in 20 ms; others, of up to 20 MB, take up to a
 * second.
 */
const quicklyLoaded = 1_000_000
/** So many characters take the main thread less than 0.1 ms: the library reads them in another. */
const shortCharacters = 2_048

// the instruction is tokenized with each text
export const charactersOf = ({ texts, instruction }: EmbedTextsRequest): number =>
  texts.reduce((sum, text) => sum + text.length + instruction.length, 0)

/**
 * Makes a function that tokenizes requests in the thread pool. A short one alone is tokenized from
 * this thread, where the tokenizer is quickly loaded: the hop to the pool takes twice as long.
 */
export const makeTokenizeTexts = ({
  folder,
  workers,
  log,
}: {
  /** Folder of the model's files. */
  readonly folder: string
  readonly workers: Workers
  readonly log: Log
}): ((
  requests: readonly EmbedTextsRequest[],
) => Effect.Effect<readonly EmbedTexts[], ApiError>) => {
  const isQuick = statSync(join(folder, "tokenizer.json")).size <= quicklyLoaded
  if (isQuick) tokenizerIn(folder)
  return (requests) => {
    const input = { folder, requests }
    const [first, ...others] = requests
    return isQuick && first && others.length === 0 && charactersOf(first) <= shortCharacters
      ? inThisThread(log, job, () => embedTextsJob(input))
      : inPool<EmbedTextsInput, readonly EmbedTexts[]>(workers, log, job, input)
  }
}
