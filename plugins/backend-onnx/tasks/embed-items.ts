import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { EmbedItem, EmbedRequest } from "../../../core/ports/model.ts"
import type { ImageFile } from "../images/decode-images.ts"

/** A text, or its tokens, and its place in the request. */
export interface PlacedText {
  readonly index: number
  readonly text: string | Int32Array
}

export interface DividedItems {
  readonly texts: readonly PlacedText[]
  readonly images: readonly ImageFile[]
}

/** What a model can embed: ids below `vocabulary`, and images or none. */
export interface Embeddable {
  readonly vocabulary: number
  readonly images: boolean
}

const wrongItem = (
  item: EmbedItem,
  index: number,
  { vocabulary, images }: Embeddable,
): ApiError | undefined => {
  const param = `input[${index}]`
  if (item.type === "media") {
    if (images && item.mediaType.startsWith("image/")) return undefined
    const what = images ? "texts and images only, not other" : "texts only, not images or other"
    return apiError("unsupported_parameter", `This model embeds ${what} media.`, { param })
  }
  const at = item.type === "tokens" ? item.ids.findIndex((id) => id >= vocabulary) : -1
  return at < 0
    ? undefined
    : apiError(
        "invalid_request_error",
        `The token id ${(item as { readonly ids: Int32Array }).ids[at]} is not in this model's vocabulary of ${vocabulary}.`,
        { param: `${param}[${at}]` },
      )
}

/** Divides the items of a request; fails with the first that the model can't embed. */
export const dividedItems = Effect.fnUntraced(function* (
  { items }: EmbedRequest,
  model: Embeddable,
): Effect.fn.Return<DividedItems, ApiError> {
  const texts: PlacedText[] = []
  const images: ImageFile[] = []
  for (const [index, item] of items.entries()) {
    const wrong = wrongItem(item, index, model)
    if (wrong) return yield* wrong
    if (item.type === "media") images.push({ index, bytes: item.bytes })
    else texts.push({ index, text: item.type === "text" ? item.text : item.ids })
  }
  return { texts, images }
})
