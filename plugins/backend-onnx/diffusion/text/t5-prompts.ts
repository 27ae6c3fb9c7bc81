import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import { longs } from "../../onnx/onnx-session.ts"
import { tokenizerFile } from "../../tokenizer/folder-language.ts"
import { Damaged, explaining } from "../../weights/model-file-error.ts"
import type { Parts } from "../folder/part.ts"
import { type PipelineFolder, partIn } from "../folder/pipeline-folder.ts"
import type { Tensor } from "../model.ts"
import { buildT5Encoder, t5Config } from "./t5-encoder.ts"

const graphVersion = 1

/** Opens the tokenizer.json of a folder. Throws `ModelFileError`. */
const openTokenizer = (folder: string): Tokenizer =>
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
const paddedTokens = async (
  tokenizer: Tokenizer,
  text: string,
  length: number,
  padding: number,
): Promise<readonly number[]> => {
  const ids = (await tokenizer.encode(text)).getIds()
  const kept = ids.length > length ? [...ids.slice(0, length - 1), ids.at(-1)!] : ids
  return [...kept, ...new Array<number>(length - kept.length).fill(padding)]
}

/**
 * Opens the T5 encoder of a pipeline by the names of its parts. The function that is returned makes
 * the states `[1,length,width]` of a prompt; padding has states, too.
 */
export const openT5Prompts = async (
  parts: Parts,
  folder: PipelineFolder,
  [encoder, tokenizerName]: readonly [encoder: string, tokenizer: string],
): Promise<(prompt: string, length: number) => Promise<Tensor>> => {
  const { path, config: json } = partIn(folder, encoder, ["T5EncoderModel"])
  const config = explaining(path, () => t5Config(json))
  const pad: unknown = json.get("pad_token_id")
  const padding = typeof pad === "number" ? pad : 0
  const tokenizer = openTokenizer(join(folder.path, tokenizerName))
  const part = await parts.open({
    name: encoder,
    path,
    key: ["t5", graphVersion, config],
    build: (building, progress) => buildT5Encoder(building, config, progress),
  })
  return async (prompt, length) => {
    const ids = await paddedTokens(tokenizer, prompt, length, padding)
    const { states } = await part.run({ input_ids: longs(ids, [1, length]) })
    return { data: states!.data as Float32Array, dims: states!.dims }
  }
}
