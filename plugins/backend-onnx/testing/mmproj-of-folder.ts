import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { decoderConfig } from "../architectures/folder-config.ts"
import type { TiledSight } from "../vision/sight-config.ts"
import { sightConfig } from "../vision/sight-config.ts"
import type { TransformerConfig } from "../vision/vision-config.ts"
import { readJson } from "../weights/json-file.ts"
import { openSafetensorsFolder } from "../weights/safetensors-folder.ts"
import { architectureMetadata, byteLevelMetadata, ggufTensors, valuesOf } from "./gguf-of-folder.ts"
import { type GgufTensor, type GgufValue, writeGguf } from "./gguf-writer.ts"

/** The names of llama.cpp's first converter, and of those that followed: `fc1` is the one or the other. */
const towerName = (name: string, isOld: boolean): string | undefined => {
  const projector = /multi_modal_projector\.linear_([12])(.+)$/.exec(name)
  if (projector) return `mm.${projector[1] === "1" ? 0 : 2}${projector[2]}`
  if (name.includes("modality_projection")) return "mm.model.fc.weight"
  const own = /(?:vision_tower|vision_model)\.(?:vision_model\.)?(.+)$/.exec(name)?.[1]
  return own
    ?.replace("embeddings.", "")
    .replace("encoder.layers", "blk")
    .replace("self_attn.out_proj", "attn_out")
    .replace(/self_attn\.([qkv])_proj/, "attn_$1")
    .replace("layer_norm", "ln")
    .replace("pre_layrnorm", "pre_ln")
    .replace("post_layernorm", "post_ln")
    .replace("mlp.fc1", isOld ? "ffn_down" : "ffn_up")
    .replace("mlp.fc2", isOld ? "ffn_up" : "ffn_down")
    .replace("_embedding", "_embd")
    .replace(/^/, "v.")
}

/** How a folder sees whose tower llama.cpp knows. */
type Sight = TiledSight & { readonly tower: TransformerConfig }

const towerMetadata = (
  { family, tower, states, connector, preprocessing, tiling }: Sight,
  isOld: boolean,
): Readonly<Record<string, GgufValue>> => ({
  "general.architecture": "clip",
  "clip.has_vision_encoder": true,
  ...(isOld && { "clip.has_llava_projector": true }),
  "clip.projector_type": family === "llava" ? "mlp" : "idefics3",
  "clip.use_gelu": tower.activation !== "quick_gelu",
  "clip.vision.image_size": preprocessing.width,
  "clip.vision.patch_size": tower.patch,
  "clip.vision.embedding_length": tower.width,
  "clip.vision.feed_forward_length": tower.feedForward,
  "clip.vision.attention.head_count": tower.heads,
  "clip.vision.attention.layer_norm_epsilon": { f32: tower.normEpsilon },
  "clip.vision.block_count": isOld ? states.layers : tower.layers,
  "clip.vision.image_mean": preprocessing.mean.map((value) => ({ f32: value })),
  "clip.vision.image_std": preprocessing.std.map((value) => ({ f32: value })),
  ...(connector.type === "shuffle" && { "clip.vision.projector.scale_factor": connector.scale }),
  ...(tiling && { "clip.vision.preproc_image_size": tiling.longestEdge }),
})

/** Tower and projector of a folder as one of llama.cpp's converters writes them. */
export const mmprojGguf = (
  folder: string,
  isOld: boolean,
  more: Readonly<Record<string, GgufValue>> = {},
): Buffer => {
  const config = sightConfig(folder) as Sight
  const source = openSafetensorsFolder(folder)
  const tensors = [...source.names()].flatMap((name): readonly GgufTensor[] => {
    const own = towerName(name, isOld)
    if (own === undefined) return []
    const layer = Number(/^v\.blk\.(\d+)/.exec(own)?.[1] ?? 0)
    if (isOld && (layer >= config.states.layers || own.startsWith("v.post_ln"))) return []
    const { rows, columns } = source.tensor(name)
    const { patch, width } = config.tower
    const plain = rows > 1 ? [columns, rows] : [columns]
    return [
      {
        name: own,
        dimensions: own === "v.patch_embd.weight" ? [patch, patch, 3, width] : plain,
        type: 0,
        bytes: new Uint8Array(valuesOf(source, name).buffer),
      },
    ]
  })
  source.close()
  return writeGguf({ metadata: { ...towerMetadata(config, isOld), ...more }, tensors })
}

/** The decoder of a folder that sees, alone, in F32. */
export const sightedDecoderGguf = (
  folder: string,
  template: string,
  eosToken: number,
  ropeBase = 10_000,
): Buffer => {
  const config = decoderConfig(readJson(folder, "config.json"))
  const tensors = ggufTensors(
    folder,
    config,
    (values) => ({ type: 0, bytes: new Uint8Array(values.buffer) }),
    (name) =>
      /language_model|text_model|^lm_head/.test(name)
        ? name
            .replace(/^model\.(language_model|text_model)\./, "model.")
            .replace(/^language_model\./, "")
        : undefined,
  )
  return writeGguf({
    metadata: {
      ...architectureMetadata(config, ropeBase),
      ...byteLevelMetadata(folder, "smollm"),
      "tokenizer.ggml.bos_token_id": 1,
      "tokenizer.ggml.eos_token_id": eosToken,
      "tokenizer.chat_template": template,
    },
    tensors,
  })
}

/** Writes a file of a test into its folder; returns its path. */
export const writtenIn = (folder: string, name: string, bytes: Buffer): string => {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}
