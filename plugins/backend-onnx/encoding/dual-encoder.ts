import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import { objectAt } from "../architectures/folder-json.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { countOr, type Metadata, numberOr, present, textIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining } from "../weights/model-file-error.ts"
import type {
  EncoderBatch,
  EncoderBuilding,
  EncoderConfig,
  EncoderFamily,
  EncoderModel,
} from "./encoder-model.ts"
import {
  type Activation,
  activated,
  activationNamed,
  bidirectional,
  dense,
  layerNorm,
  lookup,
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
    activation: activationNamed(
      present(section, "hidden_act") ? textIn(section, "hidden_act") : defaults.activation,
    ),
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

/** The layers of a tower, with norms before both of their parts. `mask` is added to the scores. */
export const towerLayers = (
  building: EncoderBuilding,
  tower: string,
  x: Value,
  sizes: TowerSizes,
  mask?: Value,
): Value => {
  const { graph } = building
  const { width } = sizes
  let states = x
  for (let index = 0; index < sizes.layers; index++) {
    const name = `${tower}.encoder.layers.${index}`
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

interface TextTower extends EncoderConfig {
  readonly positions: number
  readonly activation: Activation
  /** Length of the vectors behind the tower's last layer. */
  readonly projection: number
}

const nameOf = (json: Metadata): string => {
  const path = present(json, "_name_or_path") ? textIn(json, "_name_or_path") : ""
  return path.split("/").at(-1) || textIn(json, "model_type")
}

const textTower = (
  json: Metadata,
  section: Metadata,
  defaults: Parameters<typeof towerSizes>[1] & {
    readonly vocabulary: number
    readonly positions: number
  },
): Omit<TextTower, "projection"> => {
  const positions = countOr(section, "max_position_embeddings", 2 ** 20, defaults.positions)
  return {
    ...towerSizes(section, defaults),
    family: textIn(json, "model_type"),
    vocabulary: countOr(section, "vocab_size", 2 ** 24, defaults.vocabulary),
    positions,
    maxTokens: positions,
    name: nameOf(json),
  }
}

const embedded = (
  building: EncoderBuilding,
  { vocabulary, positions, width }: TextTower,
  ids: Value,
  places: Value,
): Value => {
  const rowsOf = (name: string, rows: number, indices: Value) => {
    const tensor = `text_model.embeddings.${name}_embedding.weight`
    return lookup(building, tensor, { rows, columns: width }, indices)
  }
  return building.graph.node("Add", [
    rowsOf("token", vocabulary, ids),
    rowsOf("position", positions, places),
  ])
}

/** Added to the scores, so that a token sees itself and those before it: `[S,S]`. */
const causal = ({ graph }: EncoderBuilding, { positions }: EncoderBatch): Value => {
  const rows = graph.node("Unsqueeze", [positions, graph.ints([1])])
  const hidden = graph.node("Less", [rows, positions])
  return graph.node("Where", [hidden, graph.floats(-1e9), graph.floats(0)])
}

/** The states of the last real tokens, `[B,width]`. */
const lastStates = ({ graph }: EncoderBuilding, { lengths }: EncoderBatch, states: Value): Value =>
  graph.node(
    "GatherND",
    [
      states,
      graph.node("Unsqueeze", [graph.node("Sub", [lengths, graph.ints(1)]), graph.ints([1])]),
    ],
    { attributes: { batch_dims: 1 } },
  )

/**
 * The text tower of CLIP (Radford et al., arXiv 2103.00020): causal, the state of the end token
 * projected. Padding lies behind that token, where it is not seen.
 */
export const clipText: EncoderFamily = (json): EncoderModel => {
  const section = towerSection(json, "text_config")
  const defaults = { ...clipDefaults, width: 512, heads: 8, vocabulary: 49_408, positions: 77 }
  const projection = countOr(json, "projection_dim", 65_536, 512)
  const config: TextTower = { ...textTower(json, section, defaults), projection }
  return {
    config,
    states: (building, batch) => {
      const x = embedded(building, config, batch.ids, batch.positions)
      const states = towerLayers(building, "text_model", x, config, causal(building, batch))
      return towerNorm(building, "text_model.final_layer_norm", states, config)
    },
    pooled: {
      width: projection,
      build: (building, batch, states) =>
        dense(building, "text_projection", lastStates(building, batch, states), {
          rows: projection,
          columns: config.width,
        }),
    },
  }
}

const contentOf = (token: unknown): unknown =>
  typeof token === "object" && token !== null ? (token as { content?: unknown }).content : token

/** The id of the token that the tokenizer pads with. */
const paddingToken = (folder: string): number => {
  const name = "tokenizer_config.json"
  return explaining(join(folder, name), () => {
    const json = readJson(folder, name)
    const wanted = contentOf(json.get("pad_token"))
    if (typeof wanted !== "string") throw new Damaged("it has no 'pad_token'")
    const listed = [...objectAt(json, "added_tokens_decoder")].find(
      ([, token]) => contentOf(token) === wanted,
    )
    // reading all tokens takes a second where there are 256,000 of them
    const id = listed
      ? Number(listed[0])
      : Tokenizer.fromFile(join(folder, "tokenizer.json")).tokenToId(wanted)
    if (id === null) throw new Damaged(`'pad_token' is '${wanted}', which is no token`)
    return id
  })
}

/** The ids of the texts, padded to the window with `padding`: `[B,positions]`. */
const paddedIds = (
  { graph }: EncoderBuilding,
  { ids, real }: EncoderBatch,
  positions: number,
  padding: number,
): Value => {
  const isReal = graph.node("Greater", [real, graph.floats(0.5)])
  const known = graph.node("Where", [isReal, ids, graph.ints(padding)])
  const length = graph.node("Shape", [ids], { attributes: { start: 1, end: 2 } })
  const missing = graph.node("Sub", [graph.ints([positions]), length])
  const pads = graph.concat([graph.ints([0, 0, 0]), missing], 0)
  return graph.node("Pad", [known, pads, graph.ints(padding)])
}

/**
 * The text tower of SigLIP and SigLIP 2 (Zhai et al., arXiv 2303.15343; Tschannen et al., arXiv
 * 2502.14786): it reads padding as tokens, up to its window, and the last state goes through a
 * dense layer.
 */
export const siglipText: EncoderFamily = (json, _, folder): EncoderModel => {
  const section = towerSection(json, "text_config")
  const defaults = { ...siglipDefaults, width: 768, heads: 12, vocabulary: 32_000, positions: 64 }
  const tower = textTower(json, section, defaults)
  const projection = countOr(section, "projection_size", 65_536, tower.width)
  const padding = paddingToken(folder)
  const config: TextTower & { readonly padding: number } = { ...tower, projection, padding }
  const { positions, width } = config
  return {
    config,
    readsTokens: positions,
    states: (building, batch) => {
      const ids = paddedIds(building, batch, positions, padding)
      const { graph } = building
      const places = graph.node("Range", [graph.ints(0), graph.ints(positions), graph.ints(1)])
      const x = embedded(building, config, ids, places)
      const states = towerLayers(building, "text_model", x, config)
      return towerNorm(building, "text_model.final_layer_norm", states, config)
    },
    pooled: {
      width: projection,
      build: (building, _batch, states) => {
        const { graph } = building
        const last = graph.node("Gather", [states, graph.ints(positions - 1)], {
          attributes: { axis: 1 },
        })
        return dense(building, "text_model.head", last, { rows: projection, columns: width })
      },
    },
  }
}
