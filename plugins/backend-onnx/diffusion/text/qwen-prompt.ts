import { chatPrompt } from "../../chat-format/chat-prompt.ts"
import { cachedFolder, digestOf } from "../../onnx/graph-cache.ts"
import {
  type ChatTokenizer,
  chatTokenizerVersion,
  loadChatTokenizer,
  writeChatTokenizer,
} from "../../tokenizer/chat-tokenizer.ts"
import { folderLanguage } from "../../tokenizer/folder-language.ts"

/** Tokens of a prompt, padded at the end, and how many are not padding. */
export interface PaddedPrompt {
  readonly ids: readonly number[]
  readonly length: number
}

/**
 * Opens the tokenizer and chat template of a folder, which are kept in the cache of graphs; `size`:
 * rows of the embedding table. Throws `ModelFileError`.
 */
export const openChatPrompts = (folder: string, graphs: string, size: number): ChatTokenizer => {
  const language = folderLanguage(folder, size)
  const digest = digestOf(["language", chatTokenizerVersion, language])
  return loadChatTokenizer(
    cachedFolder(graphs, digest, (empty) => writeChatTokenizer(language, empty)),
  )
}

/**
 * A prompt as the message of a user, before an answer without reasoning; what is beyond `length`
 * tokens is cut. A prompt's text can't become control tokens.
 */
export const qwenPrompt = async (
  chat: ChatTokenizer,
  text: string,
  length: number,
): Promise<PaddedPrompt> => {
  const messages = [{ role: "user", content: text }]
  const prompt = await chatPrompt(chat, { messages, thinking: false }, Number.MAX_SAFE_INTEGER)
  if (!("ids" in prompt))
    throw new Error(
      `the prompt can't be written by the chat template (${"refused" in prompt ? prompt.refused : "too long"})`,
    )
  const ids = [...prompt.ids.subarray(0, length)]
  const { eosToken, controlTokens } = chat.format
  const padding = controlTokens["<|endoftext|>"] ?? controlTokens[eosToken] ?? 0
  return {
    ids: [...ids, ...new Array<number>(length - ids.length).fill(padding)],
    length: ids.length,
  }
}
