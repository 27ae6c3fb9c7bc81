import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { ChatBody } from "./request-schema.ts"

type Block = Exclude<NonNullable<ChatBody["messages"][number]["content"]>, string>[number]

/** The path of the first image. */
const imageIn = (body: ChatBody): string | undefined => {
  for (const [m, { content }] of body.messages.entries())
    if (Array.isArray(content)) {
      const b = (content as readonly Block[]).findIndex((block) => block.type === "image_url")
      if (b >= 0) return `messages[${m}].content[${b}].image_url`
    }
  return undefined
}

/** 400 `unsupported_parameter` for what is in the contract but not served yet: images. Nothing is ever dropped silently. */
export const refuseUnsupported = (body: ChatBody): Effect.Effect<void, ApiError> =>
  Effect.suspend(() => {
    const param = imageIn(body)
    return param === undefined
      ? Effect.void
      : Effect.fail(
          apiError("unsupported_parameter", `Image input is not available here yet (${param}).`, {
            param,
          }),
        )
  })
