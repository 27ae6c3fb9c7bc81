import { objectAt } from "../architectures/folder-json.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { countOr, type Metadata, numberOr, textOr } from "../weights/gguf-metadata.ts"
import { Damaged } from "../weights/model-file-error.ts"
import type { EncoderBuilding } from "./encoder-model.ts"
import {
  type Activation,
  activated,
  activationNamed,
  bidirectional,
  dense,
  layerNorm,
  projections,
} from "./encoder-parts.ts"

/** The sizes of a tower of CLIP or SigLIP, for texts or pictures. */
export interface TowerSizes {
  readonly layers: number
  readonly width: number
  readonly heads: number
  readonly feedForward: number
  readonly normEpsilon: number
  readonly activation: Activation
}

/** Defaults of keys that config.json leaves out, from the configuration classes of transformers. */
export const clipDefaults = { activation: "quick_gelu", normEpsilon: 1e-5 }
export const siglipDefaults = { activation: "gelu_pytorch_tanh", normEpsilon: 1e-6 }

/** The part of a config.json for one of its towers; old files have changes to it beside it. */
export const towerSection = (json: Metadata, key: "text_config" | "vision_config"): Metadata =>
  new Map([...objectAt(json, key), ...objectAt(json, `${key}_dict`)])

/** Reads the sizes of a tower. Throws `Damaged`. */
export const towerSizes = (
  section: Metadata,
  defaults: typeof clipDefaults & { readonly width: number; readonly heads: number },
): TowerSizes => {
  const width = countOr(section, "hidden_size", 65_536, defaults.width)
  const heads = countOr(section, "num_attention_heads", 1024, defaults.heads)
  if (width % heads) throw new Damaged(`${heads} heads don't fit a width of ${width}`)
  return {
    layers: countOr(section, "num_hidden_layers", 512, 12),
    width,
    heads,
    feedForward: countOr(section, "intermediate_size", 1_048_576, 4 * defaults.width),
    normEpsilon: numberOr(section, "layer_norm_eps", defaults.normEpsilon),
    activation: activationNamed(textOr(section, "hidden_act", defaults.activation)),
  }
}

const norms = ({ width, normEpsilon }: TowerSizes) => ({ width, epsilon: normEpsilon })

/** The layer norm `name` of a tower's states. */
export const towerNorm = (
  building: EncoderBuilding,
  name: string,
  x: Value,
  sizes: TowerSizes,
): Value => layerNorm(building, name, x, norms(sizes))

/** Two dense layers with the tower's activation between them: `name.fc1`, `name.fc2`. */
export const towerFeedForward = (
  building: EncoderBuilding,
  name: string,
  x: Value,
  { width, feedForward, activation }: TowerSizes,
): Value => {
  const hidden = dense(building, `${name}.fc1`, x, { rows: feedForward, columns: width })
  const active = activated(building, activation, hidden)
  return dense(building, `${name}.fc2`, active, { rows: width, columns: feedForward })
}

/**
 * The layers of a tower, or those from `first` on, with norms before both of their parts. `mask` is
 * added to the scores.
 */
export const towerLayers = (
  building: EncoderBuilding,
  tower: string,
  x: Value,
  sizes: TowerSizes,
  mask?: Value,
  first = 0,
): Value => {
  const { graph } = building
  const { width } = sizes
  let states = x
  for (let index = first; index < sizes.layers; index++) {
    const name = `${tower}.layers.${index}`
    const names = ["q", "k", "v"].map((part) => `${name}.self_attn.${part}_proj`)
    const before = towerNorm(building, `${name}.layer_norm1`, states, sizes)
    const parts = projections(building, names, before, width)
    const attended = bidirectional(building, parts, sizes, mask)
    const square = { rows: width, columns: width }
    const out = dense(building, `${name}.self_attn.out_proj`, attended, square)
    const between = graph.node("Add", [states, out])
    const middle = towerNorm(building, `${name}.layer_norm2`, between, sizes)
    const fed = towerFeedForward(building, `${name}.mlp`, middle, sizes)
    states = graph.node("Add", [between, fed])
  }
  return states
}
