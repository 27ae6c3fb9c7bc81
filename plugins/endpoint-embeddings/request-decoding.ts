import { Effect } from "effect"
import { firstCharacters, isLongerThan, lastCharacters } from "../../core/characters.ts"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { EmbedRequest, Part } from "../../core/ports/model.ts"
import { toMedia } from "./image-decoding.ts"
import type { EmbeddingsBody, Item } from "./schema.ts"

const maxCharacters = 10_000

export interface ReadItem {
  readonly part: Part
  /** Whether it was truncated here, before the model. */
  readonly cut: boolean
}

const toText = (
  text: string,
  truncate: EmbedRequest["truncate"],
  path: string,
): Effect.Effect<ReadItem, ApiError> => {
  if (!isLongerThan(text, maxCharacters))
    return Effect.succeed({ part: { type: "text", text }, cut: false })
  if (truncate === "NONE")
    return Effect.fail(
      apiError("text_too_long", `${path} has more than 10,000 characters, and truncate is NONE.`, {
        param: path,
      }),
    )
  const kept =
    truncate === "START"
      ? lastCharacters(text, maxCharacters)
      : firstCharacters(text, maxCharacters)
  return Effect.succeed({ part: { type: "text", text: kept }, cut: true })
}

/** Returns the items of the input, in order; fails with the first wrong one. */
export const readItems = (body: EmbeddingsBody): Effect.Effect<readonly ReadItem[], ApiError> => {
  const { input, instruction } = body
  const truncate = body.truncate ?? "END"
  if (typeof input === "string")
    return Effect.map(toText(input, truncate, "input"), (item) => [item])
  if (instruction && input.some((item) => typeof item !== "string"))
    return Effect.fail(apiError("instruction_with_image", undefined, { param: "instruction" }))
  return Effect.forEach(input as readonly Item[], (item, index) => {
    const path = `input[${index}]`
    return typeof item === "string"
      ? toText(item, truncate, path)
      : Effect.map(toMedia(item, path), (part) => ({ part, cut: false }))
  })
}
