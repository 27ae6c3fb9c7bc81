import { join } from "node:path"
import type { Adapter } from "../../../../core/ports/model.ts"
import { longs } from "../../onnx/onnx-session.ts"
import { explaining } from "../../weights/model-file-error.ts"
import type { PartGraph } from "../folder/part.ts"
import { type PipelineFolder, partIn } from "../folder/pipeline-folder.ts"
import type { AdaptedPart } from "../lora/adapted-parts.ts"
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

/** A CLIP text encoder of a pipeline, before its graph is opened. */
export interface ClipEncoder {
  readonly graph: PartGraph
  /** Reads prompts with the opened graph. */
  reads(part: AdaptedPart): (prompt: string, adapter?: Adapter) => Promise<ClipStates>
}

/** The CLIP text encoder of a pipeline by the names of its parts. Throws `ModelFileError`. */
export const clipEncoder = (
  folder: PipelineFolder,
  [encoder, tokenizerName]: readonly [encoder: string, tokenizer: string],
): ClipEncoder => {
  const classes = ["CLIPTextModel", "CLIPTextModelWithProjection"]
  const { path, config: json } = partIn(folder, encoder, classes)
  const config = explaining(path, () => clipConfig(json))
  const tokenizer = openClipTokenizer(join(folder.path, tokenizerName), config.positions)
  return {
    graph: {
      name: encoder,
      path,
      key: ["clip", graphVersion, config],
      build: (building, progress) => buildClipEncoder(building, config, progress),
    },
    reads: (part) => async (prompt, adapter) => {
      const { ids, end } = await tokenizer.encode(prompt)
      const feeds = { input_ids: longs(ids, [1, ids.length]), end: longs([end]) }
      const found = await part.run(feeds, adapter)
      const tensor = (name: keyof ClipStates): Tensor => ({
        data: found[name]!.data as Float32Array,
        dims: found[name]!.dims,
      })
      return {
        states: tensor("states"),
        penultimate: tensor("penultimate"),
        pooled: tensor("pooled"),
      }
    },
  }
}
