import { existsSync } from "node:fs"
import { join } from "node:path"
import { objectAt } from "../architectures/folder-json.ts"
import { partsFile, sentenceConfigFile } from "../tokenizer/sentence-folder.ts"
import { countIn, countOr, type Metadata, present, textOr } from "../weights/gguf-metadata.ts"
import { readJson, readTextFile } from "../weights/json-file.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"

/** Ways to make one vector of the states of a text's tokens; several are concatenated. */
export const poolingModes = [
  "cls",
  "max",
  "mean",
  "mean_sqrt_len",
  "weightedmean",
  "lasttoken",
] as const
export type PoolingMode = (typeof poolingModes)[number]

/** What follows the pooling, in the order of modules.json. */
export type PoolingStep =
  | { readonly type: "normalize" }
  | { readonly type: "norm"; readonly folder: string; readonly width: number }
  | {
      readonly type: "dense"
      readonly folder: string
      readonly inputs: number
      readonly outputs: number
      readonly activation: "identity" | "tanh" | "relu" | "gelu"
    }

const poolingFolder = "1_Pooling"

/** Names of the file of the part that reads texts: older files are named by its architecture. */
const readerFiles = [
  "bert",
  "roberta",
  "distilbert",
  "camembert",
  "albert",
  "xlm-roberta",
  "xlnet",
].map((name) => `sentence_${name}_config.json`)

/** What sentence-transformers stores beside config.json. */
export interface SentenceFiles {
  /** Undefined where no file says it. */
  readonly pooling: readonly PoolingMode[] | undefined
  readonly steps: readonly PoolingStep[]
  readonly maxTokens: number | undefined
  /** How many numbers of a vector are kept, where it has more. */
  readonly truncatedTo: number | undefined
}

const modeNamed = (name: string): PoolingMode => {
  const mode = poolingModes.find((known) => known === name)
  if (mode) return mode
  throw new Unsupported(`it pools by '${name}'; this backend runs ${poolingModes.join(", ")}`)
}

const flagPrefix = "pooling_mode_"

/** `pooling_mode` names them in their order; older files have a flag for each, in a fixed order. */
const poolingModesIn = (json: Metadata): readonly PoolingMode[] => {
  const mode = (name: string) => modeNamed(name.replace(/_tokens?$/, ""))
  const value: unknown = json.get("pooling_mode")
  if (value !== undefined) return (Array.isArray(value) ? value : [value]).map(String).map(mode)
  const modes = [...json]
    .filter(([key, flag]) => key.startsWith(flagPrefix) && flag === true)
    .map(([key]) => mode(key.slice(flagPrefix.length)))
  return modes.length ? poolingModes.filter((known) => modes.includes(known)) : ["mean"]
}

const poolingIn = (json: Metadata): readonly PoolingMode[] => {
  const modes = poolingModesIn(json)
  if (!modes.length || modes.length > poolingModes.length)
    throw new Damaged(`it names ${modes.length} ways of pooling`)
  if ((json.get("include_prompt") as unknown) === false)
    throw new Unsupported("it leaves the prompt out of its pooling, which this backend can't")
  return modes
}

/** Refuses another name than the one that is known, where there is any. */
const checkNamed = (json: Metadata, key: string, known: string): void => {
  if (present(json, key) && json.get(key) !== known)
    throw new Unsupported(`'${key}' is '${json.get(key)}'; this backend runs '${known}'`)
}

const denseActivations: Readonly<Record<string, "identity" | "tanh" | "relu" | "gelu">> = {
  Identity: "identity",
  Tanh: "tanh",
  ReLU: "relu",
  GELU: "gelu",
}

const denseIn = (json: Metadata, folder: string): PoolingStep => {
  const path = textOr(json, "activation_function", "torch.nn.modules.activation.Tanh")
  const name = path.split(".").at(-1)!
  // one of another library may compute something else under the same name
  const isKnown = path.startsWith("torch.") && Object.hasOwn(denseActivations, name)
  const activation = isKnown ? denseActivations[name] : undefined
  if (!activation)
    throw new Unsupported(
      `its activation is '${path}'; this backend runs torch's ${Object.keys(denseActivations).join(", ")}`,
    )
  const input: unknown = json.get("module_input_name") ?? "sentence_embedding"
  if (input !== "sentence_embedding" || (json.get("use_residual") as unknown) === true)
    throw new Unsupported("it is a dense layer of tokens, or with a residual")
  checkNamed(json, "module_output_name", "sentence_embedding")
  return {
    type: "dense",
    folder,
    inputs: countIn(json, "in_features", 65_536),
    outputs: countIn(json, "out_features", 65_536),
    activation,
  }
}

interface Module {
  readonly type: string
  readonly path: string
}

const safeFolder = /^(?!\.+$)[\w.-]+$/

/** The parts of a model, by the last words of their types, such as `Pooling`. */
const modulesIn = (folder: string): readonly Module[] => {
  if (!existsSync(join(folder, partsFile))) return []
  const text = readTextFile(folder, partsFile)
  return explaining(join(folder, partsFile), () => {
    let json: unknown
    try {
      json = JSON.parse(text)
    } catch (cause) {
      throw new Damaged(`it is not JSON (${(cause as Error).message})`)
    }
    if (!Array.isArray(json) || json.length > 16) throw new Damaged("it is no list of parts")
    return (json as readonly unknown[]).map((item): Module => {
      const { type, path = "" } = (item ?? {}) as Readonly<Record<string, unknown>>
      if (typeof type !== "string" || typeof path !== "string")
        throw new Damaged(`its part '${String(type)}' is none`)
      if (path !== "" && !safeFolder.test(path))
        throw new Damaged(`its part '${type}' is in '${path}', which is no folder of the model`)
      if (!type.startsWith("sentence_transformers."))
        throw new Unsupported(`its part '${type}' is none of sentence-transformers`)
      return { type: type.split(".").at(-1)!, path }
    })
  })
}

const configOf = <A>(folder: string, path: string, read: (json: Metadata) => A): A => {
  const name = join(path, "config.json")
  return explaining(join(folder, name), () => read(readJson(folder, name)))
}

const stepOf = (folder: string, { type, path }: Module): readonly PoolingStep[] => {
  if (type === "Transformer" || type === "Pooling") return []
  if (type === "Normalize") return [{ type: "normalize" }]
  if (type === "Dense") return [configOf(folder, path, (json) => denseIn(json, path))]
  if (type === "LayerNorm")
    return [
      configOf(folder, path, (json) => ({
        type: "norm",
        folder: path,
        width: countIn(json, "dimension", 65_536),
      })),
    ]
  return explaining(join(folder, partsFile), () => {
    throw new Unsupported(`its part '${type}' is unknown to this backend`)
  })
}

/** Undefined where the file says nothing, or a number that stands for none. */
const limitIn = (folder: string, name: string, key: string): number | undefined => {
  if (!existsSync(join(folder, name))) return undefined
  return explaining(join(folder, name), () => {
    const limit = countOr(readJson(folder, name), key, Number.MAX_VALUE, Number.MAX_VALUE)
    return limit > 2 ** 31 ? undefined : limit
  })
}

const readerFileIn = (folder: string): string =>
  readerFiles.find((name) => existsSync(join(folder, name))) ?? readerFiles[0]!

const poolingsIn = (modules: readonly Module[]): readonly Module[] =>
  modules.filter(({ type }) => type === "Pooling")

/** Refuses a model whose parts and their names make no vector of the states of a text's tokens. */
const checkStates = (json: Metadata): void => {
  checkNamed(json, "module_output_name", "token_embeddings")
  if (!present(json, "modality_config")) return
  const modalities = objectAt(json, "modality_config")
  if (!present(modalities, "text"))
    throw new Unsupported("'modality_config' has no 'text', so it reads no plain texts")
  const text = objectAt(modalities, "text")
  const [method, output] = [text.get("method"), text.get("method_output_name")]
  if (method !== "forward" || output !== "last_hidden_state")
    throw new Unsupported(
      `'modality_config' reads '${output}' of '${method}' for texts; this backend runs 'last_hidden_state' of 'forward'`,
    )
}

const sayPooling = "If you know how it pools, say so in the entry's options: pooling"

/**
 * Refuses a folder whose parts don't say how states are pooled; one that lists no parts is pooled by
 * the mean. `isChosen`: the entry's options say it.
 */
const checkPooling = (folder: string, isChosen: boolean): void => {
  if (!existsSync(join(folder, partsFile))) return
  const poolings = poolingsIn(modulesIn(folder))
  explaining(join(folder, partsFile), () => {
    if (poolings.length > 1)
      throw new Unsupported(
        `it has ${poolings.length} parts 'Pooling'; this backend runs models with one`,
      )
    if (!isChosen && poolings.length === 0)
      throw new Unsupported(
        "it has no part 'Pooling', so no file says how its states become a vector",
        sayPooling,
      )
  })
  const name = join(poolings[0]?.path ?? "", "config.json")
  if (!isChosen && !existsSync(join(folder, name)))
    explaining(join(folder, name), () => {
      throw new Damaged("it is missing", `Pull it, too. ${sayPooling}`)
    })
}

/**
 * Refuses a folder that makes other vectors than this backend would, by what sentence-transformers
 * stores in it. Throws `ModelFileError`.
 */
export const checkVectors = (
  folder: string,
  { poolsItself, isChosen }: { readonly poolsItself: boolean; readonly isChosen: boolean },
): void => {
  if (existsSync(join(folder, sentenceConfigFile))) {
    const json = readJson(folder, sentenceConfigFile)
    explaining(join(folder, sentenceConfigFile), () =>
      checkNamed(json, "model_type", "SentenceTransformer"),
    )
  }
  if (poolsItself) return
  const name = readerFileIn(folder)
  if (existsSync(join(folder, name))) {
    const json = readJson(folder, name)
    explaining(join(folder, name), () => checkStates(json))
  }
  checkPooling(folder, isChosen)
}

/**
 * Reads modules.json, the pooling and the parts that it names, and how many tokens a text may have
 * (Reimers and Gurevych, arXiv 1908.10084). Throws `ModelFileError`.
 */
export const sentenceFiles = (folder: string): SentenceFiles => {
  const modules = modulesIn(folder)
  const pooling = poolingsIn(modules)[0]?.path ?? poolingFolder
  return {
    pooling: existsSync(join(folder, pooling, "config.json"))
      ? configOf(folder, pooling, poolingIn)
      : undefined,
    steps: modules.flatMap((module) => stepOf(folder, module)),
    maxTokens:
      limitIn(folder, readerFileIn(folder), "max_seq_length") ??
      limitIn(folder, "tokenizer_config.json", "model_max_length"),
    truncatedTo: limitIn(folder, sentenceConfigFile, "truncate_dim"),
  }
}
