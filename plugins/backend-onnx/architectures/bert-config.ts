import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { countIn, type Metadata, numberIn, textIn } from "../weights/gguf-metadata.ts"
import { Damaged, ModelFileError } from "../weights/model-file-error.ts"

/** The configuration of a BERT encoder with mean pooling. */
export interface BertConfig {
  readonly layers: number
  readonly width: number
  readonly heads: number
  readonly feedForward: number
  readonly vocabulary: number
  readonly positions: number
  readonly normEpsilon: number
  /** The maximum number of tokens of a text, special tokens included. */
  readonly maxTokens: number
  /** The model's own name, such as `all-MiniLM-L6-v2`; `bert` where the folder has none. */
  readonly name: string
}

const maxJsonBytes = 2 ** 20

/** Reads a JSON object of the folder and runs `check` on it; errors name the file. */
const inJson = <A>(folder: string, name: string, check: (json: Metadata) => A): A => {
  const path = join(folder, name)
  try {
    const text = readFileSync(path, "utf8")
    if (text.length > maxJsonBytes) throw new Damaged(`it is larger than ${maxJsonBytes} bytes`)
    const json: unknown = JSON.parse(text)
    if (typeof json !== "object" || json === null) throw new Damaged("it is not an object")
    return check(new Map(Object.entries(json)))
  } catch (cause) {
    throw new ModelFileError(path, (cause as Error).message)
  }
}

const meanOnly = (json: Metadata): void => {
  const modes = [...json]
    .filter(([key, value]) => key.startsWith("pooling_mode") && value === true)
    .map(([key]) => key)
  if (modes.join() !== "pooling_mode_mean_tokens")
    throw new Damaged(
      `it pools by ${modes.join(" and ") || "nothing"}; this backend takes the mean of the tokens`,
    )
}

const knownModules = /\.(Transformer|Pooling|Normalize)$/

// modules.json is an array: its entries are the values of the keys "0", "1" ...
const checkModules = (json: Metadata): void => {
  for (const module of json.values() as Iterable<unknown>) {
    const { type } = (module ?? {}) as { readonly type?: unknown }
    if (typeof type !== "string" || !knownModules.test(type))
      throw new Damaged(`its part '${type}' is unknown to this backend`)
  }
}

const encoder = (json: Metadata): Omit<BertConfig, "maxTokens"> => {
  const must = (key: string, wanted: string) => {
    const found = json.has(key) ? textIn(json, key) : wanted
    if (found !== wanted) throw new Damaged(`'${key}' is '${found}'; this backend runs '${wanted}'`)
  }
  textIn(json, "model_type")
  must("model_type", "bert")
  must("hidden_act", "gelu")
  must("position_embedding_type", "absolute")
  const width = countIn(json, "hidden_size", 65_536)
  const heads = countIn(json, "num_attention_heads", 1024)
  if (width % heads) throw new Damaged(`${heads} heads don't fit a width of ${width}`)
  return {
    layers: countIn(json, "num_hidden_layers", 512),
    width,
    heads,
    feedForward: countIn(json, "intermediate_size", 1_048_576),
    vocabulary: countIn(json, "vocab_size", 2 ** 24),
    positions: countIn(json, "max_position_embeddings", 2 ** 20),
    normEpsilon: numberIn(json, "layer_norm_eps"),
    name: json.has("_name_or_path") ? textIn(json, "_name_or_path").split("/").at(-1)! : "bert",
  }
}

/**
 * Reads config.json and the files that sentence-transformers stores beside it. Throws
 * `ModelFileError`.
 */
export const bertConfig = (folder: string): BertConfig => {
  const config = inJson(folder, "config.json", encoder)
  if (existsSync(join(folder, "modules.json"))) inJson(folder, "modules.json", checkModules)
  if (existsSync(join(folder, "1_Pooling", "config.json")))
    inJson(folder, join("1_Pooling", "config.json"), meanOnly)
  const limited = existsSync(join(folder, "sentence_bert_config.json"))
  const maxTokens = limited
    ? inJson(folder, "sentence_bert_config.json", (json) =>
        countIn(json, "max_seq_length", 2 ** 20),
      )
    : config.positions
  return { ...config, maxTokens: Math.min(maxTokens, config.positions) }
}
