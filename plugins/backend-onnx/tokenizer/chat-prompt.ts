import type { ChatTokenizer } from "./chat-tokenizer.ts"
import { controlGuard } from "./control-guard.ts"

export interface PromptMessage {
  readonly role: string
  readonly content: string
}

/** `tooLong`: it has at least so many tokens. `refused`: the template can't render these messages. */
export type Prompt = { readonly ids: Int32Array } | { readonly tooLong: number } | { readonly refused: string }

const render = (chat: ChatTokenizer, messages: readonly PromptMessage[]): string | { readonly refused: string } => {
  try {
    return chat.template.render({ messages, add_generation_prompt: true, bos_token: chat.format.bosToken, eos_token: chat.format.eosToken })
  } catch (cause) {
    return { refused: (cause as Error).message }
  }
}

const encode = async (chat: ChatTokenizer, pieces: readonly (number | string)[]): Promise<Int32Array> => {
  const ids: number[] = []
  for (const piece of pieces) {
    if (typeof piece === "number") ids.push(piece)
    else for (const id of (await chat.tokenizer.encode(piece, null, { addSpecialTokens: false })).getIds()) ids.push(id)
  }
  return Int32Array.from(ids)
}

/** Messages as the model was trained to read them, up to where its answer begins. */
export const chatPrompt = async (chat: ChatTokenizer, messages: readonly PromptMessage[], contextTokens: number): Promise<Prompt> => {
  const texts = messages.map((message) => message.content)
  const atLeast = Math.ceil(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / chat.format.longestTokenBytes)
  if (atLeast > contextTokens) return { tooLong: atLeast }
  const guard = controlGuard(chat.format.controlTokens, texts)
  if (!guard) return { refused: "they use every private-use character" }
  const rendered = render(
    chat,
    messages.map(({ role, content }) => ({ role, content: guard.shield(content) })),
  )
  return typeof rendered === "string" ? { ids: await encode(chat, guard.parse(rendered)) } : rendered
}
