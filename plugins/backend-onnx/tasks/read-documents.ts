import { Effect } from "effect"
import type { ApiError } from "../../../core/errors.ts"
import type { RerankRequest } from "../../../core/ports/model.ts"
import {
  type DocumentPart,
  likelyCharacters,
  type ReadPart,
  type ReadParts,
} from "../chat-format/document-windows.ts"
import { grouped, oneAtATime, pieceCharacters } from "../chat-format/long-texts.ts"
import type { ScoredWindow } from "./document-scores.ts"

export type ReadDocuments<Input> =
  | { readonly windows: readonly ScoredWindow<Input>[] }
  | Exclude<ReadParts<Input>, { parts: unknown }>

/** Reads parts of documents in a thread of the pool. */
export type ReadJob<Input> = (
  parts: readonly DocumentPart[],
) => Effect.Effect<ReadParts<readonly Input[]>, ApiError>

/**
 * So many tokens are computed for one document at most, query included: far more than 100,000
 * characters of English need, and a bound where a long query leaves little room for documents.
 */
const mostTokens = 131_072

/** A document that is being read. */
interface Reading {
  readonly index: number
  readonly text: string
  at: number
  tokens: number
  windows: number
  sequences: number
  done: boolean
}

/**
 * Divides the documents of a request into windows, for each of which `windowTokens` may be
 * computed; a blank document has none. Long ones are read in several jobs: in one they would hold
 * up others.
 */
export const readDocuments = <Input>(
  { documents, maxDocumentTokens, maxDocumentWindows }: RerankRequest,
  windowTokens: number,
  read: ReadJob<Input>,
): Effect.Effect<ReadDocuments<Input>, ApiError> => {
  const characters = Math.max(pieceCharacters, windowTokens * likelyCharacters)
  const maxTokens = maxDocumentTokens ?? Number.POSITIVE_INFINITY
  const maxWindows = maxDocumentWindows ?? Number.POSITIVE_INFINITY
  const maxSequences = Math.max(1, Math.floor(mostTokens / windowTokens))
  const open = documents.map(
    (text, index): Reading => ({
      index,
      text,
      at: 0,
      tokens: 0,
      windows: 0,
      sequences: 0,
      done: false,
    }),
  )
  const windows: ScoredWindow<Input>[] = []
  const partOf = (of: Reading): DocumentPart => ({
    text: of.text.slice(of.at, of.at + characters),
    goesOn: of.at + characters < of.text.length,
    maxTokens: maxTokens - of.tokens,
    maxWindows: maxWindows - of.windows,
    maxSequences: maxSequences - of.sequences,
  })
  const take = (of: Reading, { windows: found, next }: ReadPart<readonly Input[]>) => {
    for (const inputs of found) {
      windows.push({ document: of.index, inputs })
      of.windows++
      of.sequences += inputs.length
    }
    of.at += next?.characters ?? 0
    of.tokens += next?.tokens ?? 0
    const isFull = of.windows >= maxWindows || of.sequences >= maxSequences
    of.done = isFull || next === undefined || of.at >= of.text.length
  }
  return Effect.gen(function* () {
    for (let left = open; left.length; left = left.filter(({ done }) => !done)) {
      const groups = grouped(left, ({ text, at }) => Math.min(characters, text.length - at))
      const isOne = groups.length === 1 && left === open
      for (const group of groups) {
        const job = read(group.map(partOf))
        const result = yield* isOne ? job : oneAtATime(job)
        if (!("parts" in result)) return result
        for (const [place, part] of result.parts.entries()) take(group[place]!, part)
      }
    }
    return { windows: windows.sort((a, b) => a.document - b.document) }
  })
}
