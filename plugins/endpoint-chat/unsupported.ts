import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { ChatBody } from "./wire.ts"

interface Unsupported {
  readonly what: string
  /** Where the body asks for it. */
  readonly at: (body: ChatBody) => string | undefined
}

type Block = Exclude<NonNullable<ChatBody["messages"][number]["content"]>, string>[number]

const when = (asked: boolean, param: string) => (asked ? param : undefined)

/** The path of the first content block for which `asks` holds; `field` is a field of the block. */
const inBlocks = (body: ChatBody, field: string, asks: (block: Block) => boolean): string | undefined => {
  for (const [m, { content }] of body.messages.entries())
    if (Array.isArray(content)) {
      const b = (content as readonly Block[]).findIndex(asks)
      if (b >= 0) return `messages[${m}].content[${b}].${field}`
    }
  return undefined
}

/** What is in the contract but not served yet. A feature that arrives deletes its row. */
const unsupported: readonly Unsupported[] = [
  { what: "Calling tools", at: (body) => when((body.tools ?? []).length > 0, "tools") },
  { what: "A forced tool call", at: ({ tool_choice }) => when(tool_choice != null && tool_choice !== "none" && tool_choice !== "auto", "tool_choice") },
  { what: "A response format other than text", at: ({ response_format }) => when(response_format != null && response_format.type !== "text", "response_format") },
  { what: "Image input", at: (body) => inBlocks(body, "image_url", (block) => block.type === "image_url") },
  { what: "Thinking", at: (body) => when(body.chat_template_kwargs?.enable_thinking === true, "chat_template_kwargs.enable_thinking") },
]

/** 400 `unsupported_parameter` for the first thing that is not served yet; nothing is ever dropped silently. */
export const refuseUnsupported = (body: ChatBody): Effect.Effect<void, ApiError> =>
  Effect.suspend(() => {
    for (const { what, at } of unsupported) {
      const param = at(body)
      if (param !== undefined) return Effect.fail(apiError("unsupported_parameter", `${what} is not available here yet (${param}).`, { param }))
    }
    return Effect.void
  })
