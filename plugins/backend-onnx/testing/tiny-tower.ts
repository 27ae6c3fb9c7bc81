import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { seededRandom } from "../sampling/random.ts"
import { writeSafetensors } from "./safetensors-writer.ts"
import { tinyBertShape } from "./tiny-bert.ts"

const edge = 16
const stem = 8
const head = 16

/** Writes an EfficientNet-Lite of one block with random weights, which sees into tiny BERT's space. */
export const writeTinyTower = (folder: string, width: number = tinyBertShape.width): string => {
  const random = seededRandom(7)
  const tensor = (name: string, shape: readonly number[]) => ({
    name,
    shape,
    values: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => random() * 2 - 1),
  })
  const layer = (name: string, shape: readonly number[]) => [
    tensor(`${name}.weight`, shape),
    tensor(`${name}.bias`, [shape[0]!]),
  ]
  const config = {
    model_type: "efficientnet_lite",
    _name_or_path: "tests/tiny-tower",
    image_size: edge,
    stem_channels: stem,
    blocks: [{ kernel_size: 3, stride: 1, expand_ratio: 1, in_channels: stem, out_channels: stem }],
    head_channels: head,
    projection_dim: width,
  }
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "config.json"), JSON.stringify(config))
  writeFileSync(
    join(folder, "model.safetensors"),
    writeSafetensors([
      ...layer("stem", [stem, 3, 3, 3]),
      ...layer("blocks.0.depthwise", [stem, 1, 3, 3]),
      ...layer("blocks.0.project", [stem, stem, 1, 1]),
      ...layer("head", [head, stem, 1, 1]),
      ...layer("projection", [width, head]),
    ]),
  )
  return folder
}
