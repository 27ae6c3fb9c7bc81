import type { ChatRequest, EmbedRequest } from "../../core/ports/model.ts"

const words = (count: number, seed: number): string =>
  Array.from({ length: count }, (_, i) => `word${(seed * 31 + i * 7) % 997}`).join(" ")

const turns = 20
/** The fake model echoes the last message, one word per token: the number of output tokens. */
export const outputTokens = 50
const roleOf = (turn: number) => (turn === 0 ? "system" : turn % 2 === 1 ? "user" : "assistant")
const messages = Array.from(
  { length: turns },
  (_, turn) =>
    ({ role: roleOf(turn), content: words(turn === turns - 1 ? outputTokens : 20, turn) }) as const,
)

/** 20 messages, 50 tokens of answer. */
export const chatBody = { model: "svc-lyt", messages, max_tokens: 64 }
export const chatStreamBody = { ...chatBody, stream: true }
/** One question of 12 words, which the fake model echoes. */
export const shortChatBody = {
  model: "svc-lyt",
  messages: [{ role: "user", content: words(12, 1) }],
  max_tokens: 64,
}
/** One sentence, in base64, as the official client asks. */
export const embeddingBody = { model: "svc-embed", input: words(12, 1), encoding_format: "base64" }

/** The Model-port requests that the endpoints decode from these bodies. */
export const chatRequest: ChatRequest = {
  messages: messages.map(({ role, content }) => ({
    role,
    content: [{ type: "text", text: content }],
  })),
  sampling: { temperature: 1, topP: 1, frequencyPenalty: 0, presencePenalty: 0 },
  maxTokens: 64,
  stop: [],
}
export const embedRequest: EmbedRequest = {
  items: [{ type: "text", text: embeddingBody.input }],
  truncate: "END",
}
