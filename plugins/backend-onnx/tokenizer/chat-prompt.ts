import type { ChatTokenizer } from "./chat-tokenizer.ts"
import { controlGuard, unusedCharacter } from "./control-guard.ts"
import { tokensBefore, withoutSigns, withSigns } from "./prefix-marks.ts"

export interface PromptMessage {
  readonly role: string
  readonly content: string
  /** Offsets in `content` at which a prefix ends that is worth caching. */
  readonly marks?: readonly number[]
}

/** `marks`: tokens before each mark, rising. `tooLong`: it has at least so many tokens. `refused`: the template can't render these messages. */
export type Prompt = { readonly ids: Int32Array; readonly marks: readonly number[] } | { readonly tooLong: number } | { readonly refused: string }

const render = (chat: ChatTokenizer, messages: readonly PromptMessage[]): string | { readonly refused: string } => {
  try {
    return chat.template.render({ messages, add_generation_prompt: true, bos_token: chat.format.bosToken, eos_token: chat.format.eosToken })
  } catch (cause) {
    return { refused: (cause as Error).message }
  }
}

const encode = async (chat: ChatTokenizer, pieces: readonly (number | string)[], sign: string): Promise<Prompt> => {
  const ids: number[] = []
  const marks: number[] = []
  for (const piece of pieces) {
    if (typeof piece === "number") {
      ids.push(piece)
      continue
    }
    const { text, cuts } = withoutSigns(piece, sign)
    const tokenizer = ids.length ? chat.laterTokenizer : chat.tokenizer
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false })
    for (const tokens of tokensBefore(encoding, cuts)) marks.push(ids.length + tokens)
    for (const id of encoding.getIds()) ids.push(id)
  }
  return { ids: Int32Array.from(ids), marks }
}

/** Messages as the model was trained to read them, up to where its answer begins. */
export const chatPrompt = async (chat: ChatTokenizer, messages: readonly PromptMessage[], contextTokens: number): Promise<Prompt> => {
  const texts = messages.map((message) => message.content)
  const atLeast = Math.ceil(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / chat.format.longestTokenBytes)
  if (atLeast > contextTokens) return { tooLong: atLeast }
  const sign = unusedCharacter(texts)
  const guard = sign && controlGuard(chat.format.controlTokens, [...texts, sign])
  if (!guard) return { refused: "they use every private-use character" }
  const rendered = render(
    chat,
    messages.map(({ role, content, marks = [] }) => ({ role, content: guard.shield(withSigns(content, marks, sign)) })),
  )
  return typeof rendered === "string" ? encode(chat, guard.parse(rendered), sign) : rendered
}
