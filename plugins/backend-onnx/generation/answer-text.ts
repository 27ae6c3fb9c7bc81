import { IncrementalDetokenizer } from "../sampling/incremental-detokenizer.ts"
import type { GenerateRequest } from "./decoder-jobs.ts"

type BytesOf = (token: number) => Uint8Array

/** Stop strings don't apply where the whole answer is constrained. */
const stopsOf = ({ stop, grammar }: GenerateRequest): readonly string[] =>
  grammar && grammar.stopUntil === undefined ? [] : stop

/** The bytes of a token; control tokens that count as text of the answer have those of their text. */
export const bytesWith = (bytesOf: BytesOf, markers: GenerateRequest["markers"] = {}): BytesOf => {
  const bytesOfMarker = new Map(
    Object.entries(markers).map(([text, token]) => [token, Buffer.from(text)]),
  )
  return bytesOfMarker.size ? (token) => bytesOfMarker.get(token) ?? bytesOf(token) : bytesOf
}

/** Turns the tokens of an answer into its text, which ends before a stop string. */
export const answerText = (
  request: GenerateRequest,
  bytesOf: BytesOf,
  dropsFirstSpace: boolean,
): IncrementalDetokenizer => {
  const { grammar, topLogprobs } = request
  const stopAfter = grammar?.after ?? request.stopAfter
  const stopRange = {
    ...(stopAfter && { after: stopAfter }),
    ...(grammar?.stopUntil && { until: grammar.stopUntil }),
  }
  return new IncrementalDetokenizer(stopsOf(request), bytesOf, {
    isDetailed: topLogprobs !== undefined,
    dropsFirstSpace,
    stopRange,
  })
}
