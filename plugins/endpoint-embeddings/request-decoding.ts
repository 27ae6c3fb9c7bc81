import { Effect } from "effect"
import { firstCharacters, isLongerThan } from "../../core/characters.ts"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { EmbedItem, EmbedRequest } from "../../core/ports/model.ts"
import { toMedia } from "./image-decoding.ts"
import { type EmbeddingsBody, type ImageItem, type Item, isImage, isTokenIds } from "./schema.ts"

const maxCharacters = 10_000
const maxTokens = 10_000

export interface ReadItem {
  readonly part: EmbedItem
  /** Whether it was truncated here, before the model. */
  readonly cut: boolean
}

const tooLong = (path: string, unit: string): Effect.Effect<never, ApiError> =>
  Effect.fail(
    apiError("text_too_long", `${path} has more than 10,000 ${unit}, and truncate is NONE.`, {
      param: path,
    }),
  )

/** Characters are code points: a surrogate pair is kept or dropped whole. */
const lastCharacters = (text: string, count: number): string => {
  let at = text.length
  for (let n = 0; n < count && at > 0; n++)
    at -= at > 1 && (text.codePointAt(at - 2) ?? 0) > 0xffff ? 2 : 1
  return text.slice(at)
}

const toText = (
  text: string,
  truncate: EmbedRequest["truncate"],
  path: string,
): Effect.Effect<ReadItem, ApiError> => {
  if (!isLongerThan(text, maxCharacters))
    return Effect.succeed({ part: { type: "text", text }, cut: false })
  if (truncate === "NONE") return tooLong(path, "characters")
  const kept =
    truncate === "START"
      ? lastCharacters(text, maxCharacters)
      : firstCharacters(text, maxCharacters)
  return Effect.succeed({ part: { type: "text", text: kept }, cut: true })
}

const toTokens = (
  ids: readonly number[],
  truncate: EmbedRequest["truncate"],
  path: string,
): Effect.Effect<ReadItem, ApiError> => {
  const cut = ids.length > maxTokens
  if (cut && truncate === "NONE") return tooLong(path, "tokens")
  const kept = truncate === "START" ? ids.slice(-maxTokens) : ids.slice(0, maxTokens)
  return Effect.succeed({ part: { type: "tokens", ids: new Int32Array(kept) }, cut })
}

const toItem = (
  item: Item,
  truncate: EmbedRequest["truncate"],
  path: string,
): Effect.Effect<ReadItem, ApiError> => {
  if (typeof item === "string") return toText(item, truncate, path)
  return isTokenIds(item)
    ? toTokens(item, truncate, path)
    : Effect.map(toMedia(item as ImageItem, path), (part) => ({ part, cut: false }))
}

const isSingle = (input: EmbeddingsBody["input"]): input is string | readonly number[] =>
  typeof input === "string" || isTokenIds(input)

/** Returns the items of the input, in order; fails with the first wrong one. */
export const readItems = (body: EmbeddingsBody): Effect.Effect<readonly ReadItem[], ApiError> => {
  const { input, instruction } = body
  const truncate = body.truncate ?? "END"
  if (isSingle(input)) return Effect.mapEager(toItem(input, truncate, "input"), (item) => [item])
  const items = input as readonly Item[]
  if (instruction && items.some(isImage))
    return Effect.fail(apiError("instruction_with_image", undefined, { param: "instruction" }))
  return Effect.forEach(items, (item, index) => toItem(item, truncate, `input[${index}]`))
}

/** A model names the first item `input[0]`, also where the request has it without an array. */
export const namedAsSent = (input: EmbeddingsBody["input"], error: ApiError): ApiError =>
  isSingle(input) && error.param?.startsWith("input[0]")
    ? apiError(error.code, error.message, { param: error.param.replace("input[0]", "input") })
    : error
