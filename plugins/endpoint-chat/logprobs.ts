import type { ChatEvent, TokenLogprob } from "../../core/ports/model.ts"
import type { Logprobs } from "./reply-schema.ts"

type TextLogprobs = NonNullable<Extract<ChatEvent, { type: "text" }>["logprobs"]>

const plain = ({ token, logprob, bytes }: TokenLogprob) => ({ token, logprob, bytes: [...bytes] })

export const toLogprobs = (tokens: TextLogprobs): Logprobs => ({
  content: tokens.map((token) => ({ ...plain(token), top_logprobs: token.top.map(plain) })),
})
