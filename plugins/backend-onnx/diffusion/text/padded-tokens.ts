import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import { tokenizerFile } from "../../tokenizer/folder-language.ts"
import { explaining, Damaged } from "../../weights/model-file-error.ts"

/** Opens the tokenizer.json of a folder. Throws `ModelFileError`. */
export const openTokenizer = (folder: string): Tokenizer =>
  explaining(join(folder, tokenizerFile), () => {
    try {
      return Tokenizer.fromFile(join(folder, tokenizerFile))
    } catch (cause) {
      throw new Damaged(`it can't be used (${(cause as Error).message})`)
    }
  })

/**
 * Tokens of a text with the special ones around it, as many as `length`: what is too much is cut
 * before the last special one, and what is missing is padding.
 */
export const paddedTokens = async (
  tokenizer: Tokenizer,
  text: string,
  length: number,
  padding: number,
): Promise<readonly number[]> => {
  const ids = (await tokenizer.encode(text)).getIds()
  const kept = ids.length > length ? [...ids.slice(0, length - 1), ids.at(-1)!] : ids
  return [...kept, ...new Array<number>(length - kept.length).fill(padding)]
}
