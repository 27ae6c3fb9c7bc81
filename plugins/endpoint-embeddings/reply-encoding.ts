import { endianness } from "node:os"
import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import { rupiahNumber } from "../../core/money.ts"
import type { Call } from "../../core/ports/endpoint.ts"
import type { EmbedEvent } from "../../core/ports/model.ts"
import { noUsage } from "../../core/usage.ts"
import type { ReadItem } from "./request-decoding.ts"
import type { EmbeddingsBody, EmbeddingsReply } from "./schema.ts"

/**
 * Returns the first `dimensions` numbers, scaled to Euclidean norm 1. A prefix of zeros has no
 * direction and stays zero.
 */
export const shorten = (vector: Float32Array, dimensions: number): Float32Array => {
  if (dimensions >= vector.length) return vector
  const prefix = vector.slice(0, dimensions)
  let square = 0
  for (const x of prefix) square += x * x
  return square === 0 ? prefix : prefix.map((x) => x / Math.sqrt(square))
}

const littleEndian = endianness() === "LE"

/** Encodes as base64 of little-endian float32, which the official client decodes. */
export const toBase64 = (vector: Float32Array): string => {
  const { buffer, byteOffset, byteLength } = littleEndian ? vector : vector.slice()
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  return (littleEndian ? bytes : bytes.swap32()).toString("base64")
}

type Data = EmbeddingsReply["data"][number]

const toData = (body: EmbeddingsBody, item: ReadItem, event: EmbedEvent): Data => {
  const vector = shorten(event.vector, body.dimensions ?? event.vector.length)
  return {
    object: "embedding",
    index: event.index,
    embedding: body.encoding_format === "base64" ? toBase64(vector) : Array.from(vector),
    type: item.part.type === "media" ? "image" : "text",
  }
}

const toUsage = (
  call: Call<EmbeddingsBody>,
  model: string,
  items: readonly ReadItem[],
  events: readonly EmbedEvent[],
): EmbeddingsReply["usage"] => {
  const used = call.used()
  const { inputTokens } = used[model] ?? noUsage
  return {
    prompt_tokens: inputTokens,
    total_tokens: inputTokens,
    image_count: items.filter(({ part }) => part.type === "media").length,
    truncated_count: events.filter((event) => event.truncated || items[event.index]?.cut).length,
    cost_idr: rupiahNumber(call.cost()),
  }
}

/** Returns the reply in the order of the input, whatever the order of the events. */
export const toReply = Effect.fnUntracedEager(function* (
  call: Call<EmbeddingsBody>,
  model: string,
  items: readonly ReadItem[],
  events: readonly EmbedEvent[],
): Effect.fn.Return<EmbeddingsReply, ApiError> {
  const byIndex = new Map(events.map((event) => [event.index, event]))
  const data: Data[] = []
  for (const [index, item] of items.entries()) {
    const event = byIndex.get(index)
    if (!event) return yield* apiError("backend_error", "The model did not embed every item.")
    const { length } = event.vector
    if ((call.body.dimensions ?? 1) > length)
      return yield* apiError(
        "invalid_request_error",
        `dimensions: the vectors of '${model}' have ${length} numbers`,
        { param: "dimensions" },
      )
    data.push(toData(call.body, item, event))
  }
  return {
    object: "list",
    data,
    model,
    usage: toUsage(call, model, items, [...byIndex.values()]),
  }
})

/**
 * Returns the JSON of a reply in base64, undefined for one with lists of numbers. `JSON.stringify`
 * looks at each character for what it must escape, of which base64 has none.
 */
export const toText = ({ data, model, usage }: EmbeddingsReply): string | undefined => {
  const vectors: string[] = []
  for (const { index, embedding, type } of data) {
    if (typeof embedding !== "string") return undefined
    vectors.push(
      `{"object":"embedding","index":${index},"embedding":"${embedding}","type":"${type}"}`,
    )
  }
  return `{"object":"list","data":[${vectors.join(",")}],"model":${JSON.stringify(model)},"usage":${JSON.stringify(usage)}}`
}
