import { Effect, Schema } from "effect"
import { type ApiError, apiError, decodeBody } from "../../../core/index.ts"

const minSeconds = 3_600
const maxSeconds = 2_592_000

/** `expires_after` as the official client sends it. */
export const ExpiresAfter = Schema.Struct({
  // not a literal: in a nullable object another literal would match no member, and the error could
  // not name the field
  anchor: Schema.String.check(
    Schema.makeFilter((anchor) => anchor === "created_at" || "must be created_at"),
  ).annotate({ description: "Always `created_at`." }),
  seconds: Schema.Int.check(Schema.isBetween({ minimum: minSeconds, maximum: maxSeconds })),
}).annotate({
  identifier: "ExpiresAfter",
  description: "When the file expires, counted from when it was made.",
})
export type ExpiresAfter = typeof ExpiresAfter.Type

const Whole = Schema.Struct({ expires_after: Schema.optionalKey(ExpiresAfter) })

/** Reads the form fields `expires_after[anchor]` and `expires_after[seconds]`. */
export const readExpiresAfter = (
  fields: ReadonlyMap<string, string>,
): Effect.Effect<ExpiresAfter | undefined, ApiError> =>
  Effect.gen(function* () {
    const [anchor, seconds] = [
      fields.get("expires_after[anchor]"),
      fields.get("expires_after[seconds]"),
    ]
    if (anchor === undefined && seconds === undefined && fields.has("expires_after"))
      return yield* apiError(
        "invalid_request_error",
        "expires_after: must come as expires_after[anchor] and expires_after[seconds]",
        { param: "expires_after" },
      )
    if (anchor === undefined && seconds === undefined) return undefined
    const count = seconds !== undefined && /^\d{1,9}$/.test(seconds) ? Number(seconds) : seconds
    const given = {
      ...(anchor !== undefined && { anchor }),
      ...(count !== undefined && { seconds: count }),
    }
    return (yield* decodeBody(Whole, { expires_after: given })).expires_after
  })
