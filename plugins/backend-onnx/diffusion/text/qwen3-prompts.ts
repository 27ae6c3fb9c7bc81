import { join } from "node:path"
import { longs } from "../../onnx/onnx-session.ts"
import { explaining } from "../../weights/model-file-error.ts"
import type { Parts } from "../folder/part.ts"
import { type PipelineFolder, partIn } from "../folder/pipeline-folder.ts"
import type { Tensor } from "../model.ts"
import { openChatPrompts, qwenPrompt } from "./qwen-prompt.ts"
import { buildQwenEncoder, qwenConfig } from "./qwen3-encoder.ts"

const graphVersion = 1

/**
 * Opens the Qwen3 of a pipeline, with its tokenizer and chat template. The function that is returned
 * makes the states `[1,length,width]` of a prompt, after `taps` layers.
 */
export const openQwenPrompts = async (
  parts: Parts,
  folder: PipelineFolder,
  graphs: string,
  { taps, length }: { readonly taps: readonly number[]; readonly length: number },
): Promise<(prompt: string) => Promise<Tensor>> => {
  const name = "text_encoder"
  const { path, config: json } = partIn(folder, name, ["Qwen3ForCausalLM", "Qwen3Model"])
  const config = explaining(path, () => qwenConfig(json, taps))
  const chat = openChatPrompts(join(folder.path, "tokenizer"), graphs, config.decoder.vocabulary)
  const part = await parts.open({
    name,
    path,
    key: ["qwen3", graphVersion, config],
    build: (building, progress) => buildQwenEncoder(building, config, progress),
  })
  return async (prompt) => {
    const { ids, length: real } = await qwenPrompt(chat, prompt, length)
    const { states } = await part.run({
      input_ids: longs(ids, [1, length]),
      length: longs([real]),
    })
    return { data: states!.data as Float32Array, dims: states!.dims }
  }
}
