import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Adapter } from "../../core/ports/model.ts"
import { adapterName, adapterNames, type ModelEntry } from "../../core/services/model-entry.ts"
import type { ChatBody } from "./request-schema.ts"

/** What a request says to have no adapter, as image requests do. */
const none = "none"

/**
 * Returns the adapter that the request chooses, by the model's name (`svc-lyt:legal`), by the field
 * `adapter`, or by both alike.
 */
export const adapterOf = (
  { model, adapter }: Pick<ChatBody, "model" | "adapter">,
  entry: ModelEntry,
): Effect.Effect<Adapter | undefined, ApiError> => {
  const named = model === entry.id ? undefined : model.slice(entry.id.length + 1)
  if (adapter == null)
    return Effect.succeed(named === undefined ? undefined : { id: named, strength: 1 })
  const { id, strength } = typeof adapter === "string" ? { id: adapter, strength: 1 } : adapter
  if (named !== undefined && named !== id)
    return Effect.fail(
      apiError(
        "invalid_request_error",
        `adapter: the model '${model}' names the adapter '${named}', and this field '${id}'. Name one.`,
        { param: "adapter" },
      ),
    )
  if (id === none) return Effect.succeed(undefined)
  // not all of the entry's: towers and speech models are parts of the model
  const names = adapterNames(entry)
  if (names.includes(adapterName(entry.id, { id })))
    return Effect.succeed({ id, strength: strength ?? 1 })
  const known = names.map((name) => `'${name.slice(entry.id.length + 1)}'`)
  return Effect.fail(
    apiError(
      "model_not_found",
      `adapter: the model '${entry.id}' has no adapter '${id}'. ${known.length ? `It has ${known.join(", ")}.` : "It has none."}`,
      { param: "adapter", status: 404 },
    ),
  )
}
