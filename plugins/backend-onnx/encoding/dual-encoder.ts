import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import { modelNameIn, objectAt } from "../architectures/folder-json.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { countOr, type Metadata, textIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining } from "../weights/model-file-error.ts"
import type {
  EncoderBatch,
  EncoderBuilding,
  EncoderConfig,
  EncoderFamily,
  EncoderModel,
} from "./encoder-model.ts"
import { dense, lookup } from "./encoder-parts.ts"
import { pools } from "./pooling.ts"
import {
  clipDefaults,
  siglipDefaults,
  type TowerSizes,
  towerLayers,
  towerNorm,
  towerSection,
  towerSizes,
} from "./tower-layers.ts"

interface TextTower extends EncoderConfig, TowerSizes {
  readonly positions: number
  /** Length of the vectors behind the tower's last layer. */
  readonly projection: number
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
    name: modelNameIn(json),
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
      const states = towerLayers(building, "text_model.encoder", x, config, causal(building, batch))
      return towerNorm(building, "text_model.final_layer_norm", states, config)
    },
    pooled: {
      width: projection,
      build: (building, batch, states) =>
        dense(building, "text_projection", pools.lasttoken(building, batch, states), {
          rows: projection,
          columns: config.width,
        }),
    },
  }
}

const contentOf = (token: unknown): unknown =>
  typeof token === "object" && token !== null ? (token as { content?: unknown }).content : token

interface Padding {
  readonly token: number
  readonly isLeft: boolean
}

/** How the tokenizer pads: with which token, and on which side. */
const paddingIn = (folder: string): Padding => {
  const name = "tokenizer_config.json"
  return explaining(join(folder, name), () => {
    const json = readJson(folder, name)
    const wanted = contentOf(json.get("pad_token"))
    if (typeof wanted !== "string") throw new Damaged("it has no 'pad_token'")
    const listed = [...objectAt(json, "added_tokens_decoder")].find(
      ([, token]) => contentOf(token) === wanted,
    )
    // reading all tokens takes a second where there are 256,000 of them
    const token = listed
      ? Number(listed[0])
      : Tokenizer.fromFile(join(folder, "tokenizer.json")).tokenToId(wanted)
    if (token === null) throw new Damaged(`'pad_token' is '${wanted}', which is no token`)
    // transformers' own default of these tokenizers
    const isGemma = /^(Siglip2|Gemma)Tokenizer/.test(String(json.get("tokenizer_class")))
    const side: unknown = json.get("padding_side") ?? (isGemma ? "left" : "right")
    return { token, isLeft: side === "left" }
  })
}

/** The ids of the texts, padded to the window: `[B,positions]`. */
const paddedIds = (
  { graph }: EncoderBuilding,
  { ids, lengths }: EncoderBatch,
  positions: number,
  { token, isLeft }: Padding,
): Value => {
  const ends = graph.node("Unsqueeze", [lengths, graph.ints([1])])
  const places = graph.node("Range", [graph.ints(0), graph.ints(positions), graph.ints(1)])
  const shift = isLeft ? graph.node("Sub", [graph.ints(positions), ends]) : graph.ints(0)
  // where each place's token stands in its text, `[B,positions]`: at its end or beyond is padding
  const from = graph.node("Sub", [places, shift])
  const shape = graph.concat([graph.node("Shape", [lengths]), graph.ints([positions])], 0)
  const wide = graph.node("Expand", [from, shape])
  const width = graph.node("Shape", [ids], { attributes: { start: 1, end: 2 } })
  const last = graph.node("Sub", [graph.node("Squeeze", [width]), graph.ints(1)])
  const within = graph.node("Max", [graph.ints(0), graph.node("Min", [wide, last])])
  const found = graph.node("GatherElements", [ids, within], { attributes: { axis: 1 } })
  const isText = isLeft
    ? graph.node("Not", [graph.node("Less", [wide, graph.ints(0)])])
    : graph.node("Less", [wide, ends])
  return graph.node("Where", [isText, found, graph.ints(token)])
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
  const padding = paddingIn(folder)
  const config: TextTower & { readonly padding: Padding } = { ...tower, projection, padding }
  const { positions, width } = config
  return {
    config,
    readsTokens: positions,
    states: (building, batch) => {
      const ids = paddedIds(building, batch, positions, padding)
      const { graph } = building
      const places = graph.node("Range", [graph.ints(0), graph.ints(positions), graph.ints(1)])
      const x = embedded(building, config, ids, places)
      const states = towerLayers(building, "text_model.encoder", x, config)
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
