import { join } from "node:path"
import { longs } from "../../onnx/onnx-session.ts"
import { explaining } from "../../weights/model-file-error.ts"
import type { Parts } from "../folder/part.ts"
import { type PipelineFolder, partIn } from "../folder/pipeline-folder.ts"
import type { Tensor } from "../model.ts"
import { buildClipEncoder, clipConfig } from "./clip-encoder.ts"
import { openClipTokenizer } from "./clip-tokenizer.ts"

const graphVersion = 1

/** What a CLIP text encoder makes of a prompt, see `buildClipEncoder`. */
export interface ClipStates {
  readonly states: Tensor
  readonly penultimate: Tensor
  readonly pooled: Tensor
}

/**
 * Opens a CLIP text encoder of a pipeline by the names of its parts; the function that is returned
 * reads a prompt. Throws `ModelFileError`.
 */
export const openClipPrompts = async (
  parts: Parts,
  folder: PipelineFolder,
  [encoder, tokenizerName]: readonly [encoder: string, tokenizer: string],
): Promise<(prompt: string) => Promise<ClipStates>> => {
  const classes = ["CLIPTextModel", "CLIPTextModelWithProjection"]
  const { path, config: json } = partIn(folder, encoder, classes)
  const config = explaining(path, () => clipConfig(json))
  const tokenizer = openClipTokenizer(join(folder.path, tokenizerName), config.positions)
  const part = await parts.open({
    name: encoder,
    path,
    key: ["clip", graphVersion, config],
    build: (building, progress) => buildClipEncoder(building, config, progress),
  })
  return async (prompt) => {
    const { ids, end } = await tokenizer.encode(prompt)
    const found = await part.run({ input_ids: longs(ids, [1, ids.length]), end: longs([end]) })
    const tensor = (name: keyof ClipStates): Tensor => ({
      data: found[name]!.data as Float32Array,
      dims: found[name]!.dims,
    })
    return {
      states: tensor("states"),
      penultimate: tensor("penultimate"),
      pooled: tensor("pooled"),
    }
  }
}
