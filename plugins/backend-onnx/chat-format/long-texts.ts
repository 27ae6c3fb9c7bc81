import { Effect, Semaphore } from "effect"
import type { ApiError } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import type { PromptMessage, PromptRequest } from "./chat-prompt.ts"
import type { CountTokensInput } from "./count-tokens-job.ts"
import { inPool } from "./pool.ts"

/** Tokenizing more than this in one job would hold up others: it takes some 20 ms. */
export const pieceCharacters = 16_384

const longTexts = Semaphore.makeUnsafe(1)

/**
 * Work with long texts. Only one of them at a time has a job in the pool's queue, so that a short
 * text waits for one piece of one of them, however many there are.
 */
export const oneAtATime = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  longTexts.withPermits(1)(work)

/** Divides items so that no group with several has more characters than a piece. */
export const grouped = <Item>(
  items: readonly Item[],
  charactersOf: (item: Item) => number,
): readonly (readonly Item[])[] => {
  const groups: Item[][] = []
  let size = Number.POSITIVE_INFINITY
  for (const item of items) {
    size += charactersOf(item)
    if (size > pieceCharacters) {
      groups.push([])
      size = charactersOf(item)
    }
    groups.at(-1)!.push(item)
  }
  return groups
}

const textsIn = ({ messages, tools = [], schema }: PromptRequest): readonly string[] => [
  schema?.text ?? "",
  ...messages.flatMap(({ content, reasoning }) => [content, reasoning ?? ""]),
  ...(tools.length ? [JSON.stringify(tools)] : []),
]

const charactersIn = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + text.length, 0)

export const isLong = (request: PromptRequest): boolean =>
  charactersIn(textsIn(request)) > pieceCharacters

function* piecesOf(texts: readonly string[]): Generator<string> {
  for (const text of texts)
    for (let at = 0; at < text.length; at += pieceCharacters)
      yield text.slice(at, at + pieceCharacters)
}

/** Texts of up to so many characters a token are tokenized at once: they may well fit. */
const likelyCharacters = 4
/** A cut changes the count by some tokens only: what has twice as many can't fit. */
const surely = 2

const withoutReasoning = ({ reasoning: _, ...message }: PromptMessage): PromptMessage => message

/**
 * Whether messages and tools have far more tokens than fit, found out piece by piece: reading 8 MB to
 * refuse them would take the pool many seconds.
 */
export const isFarTooLong = (
  workers: Workers,
  log: Log,
  folder: string,
  request: PromptRequest,
  contextTokens: number,
): Effect.Effect<boolean, ApiError> =>
  Effect.gen(function* () {
    // templates may leave reasoning of earlier turns out
    const texts = textsIn({ ...request, messages: request.messages.map(withoutReasoning) })
    if (charactersIn(texts) <= likelyCharacters * contextTokens) return false
    let tokens = 0
    for (const text of piecesOf(texts)) {
      tokens += yield* oneAtATime(
        inPool<CountTokensInput, number>(workers, log, "count-tokens-job", { folder, text }),
      )
      if (tokens > surely * contextTokens) return true
    }
    return false
  })
