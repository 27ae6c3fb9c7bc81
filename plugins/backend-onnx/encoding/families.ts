import { existsSync } from "node:fs"
import { join } from "node:path"
import { configFile } from "../architectures/folder-config.ts"
import { isClassifier } from "../tokenizer/sentence-folder.ts"
import { type Metadata, textIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { explaining, ModelFileError, Unsupported } from "../weights/model-file-error.ts"
import type { EncoderOptions } from "../worker/protocol.ts"
import { bert, roberta } from "./bert.ts"
import { decoder } from "./decoder.ts"
import { clipText, siglipText } from "./dual-encoder.ts"
import type { EncoderConfig, EncoderFamily, EncoderModel } from "./encoder-model.ts"
import { modernbert } from "./modernbert.ts"
import {
  checkVectors,
  type PoolingMode,
  type PoolingStep,
  sentenceFiles,
} from "./sentence-files.ts"
import { spaceDimensions } from "./stacked-rotations.ts"

/** Families by `model_type` of config.json. */
const families: Readonly<Record<string, EncoderFamily>> = {
  bert,
  roberta,
  "xlm-roberta": roberta,
  camembert: roberta,
  modernbert,
  qwen3: decoder,
  qwen2: decoder,
  llama: decoder,
  mistral: decoder,
  gemma3_text: decoder,
  clip: clipText,
  siglip: siglipText,
  siglip2: siglipText,
}

/** What is made of the states of a text's tokens. */
export type EncoderHead =
  /** One logit: a sequence classifier with one label, for pairs. */
  | { readonly type: "score" }
  | {
      readonly type: "vector"
      /** None where the family has a pooling of its own. */
      readonly pooling: readonly PoolingMode[]
      readonly steps: readonly PoolingStep[]
      /** Length of the model's own vectors, as far as the space takes them. */
      readonly width: number
      /**
       * They are longer, so the rest is left out: for those whose prefixes are vectors, or where
       * their files say how many numbers are kept.
       */
      readonly isCut: boolean
      /** Whether prefixes of its vectors are vectors themselves (Kusupati et al., arXiv 2205.13147). */
      readonly isMatryoshka: boolean
    }

/** An encoder of a folder, before its weights. */
export interface FolderEncoder {
  readonly model: EncoderModel
  readonly head: EncoderHead
  /** With the limits of all files. */
  readonly config: EncoderConfig
}

/** Whether a path is a folder with a sequence classifier. Throws `ModelFileError`. */
export const isClassifierFolder = (path: string): boolean =>
  existsSync(join(path, configFile)) && isClassifier(readJson(path, configFile))

/** Labels are named; older files have none, or a number. */
const checkLabels = (json: Metadata): void => {
  const named: unknown = json.get("id2label")
  const labels =
    typeof named === "object" && named !== null
      ? Object.keys(named).length
      : ((json.get("num_labels") as unknown) ?? 2)
  if (labels !== 1)
    throw new Unsupported(
      `it is a classifier of ${String(labels)} labels; this backend runs those of one, which score a pair`,
    )
}

const modelOf = (
  json: Metadata,
  folder: string,
): { readonly model: EncoderModel; readonly scores: boolean } => {
  const type = textIn(json, "model_type")
  const family = Object.hasOwn(families, type) ? families[type] : undefined
  if (!family)
    throw new Unsupported(
      `'model_type' is '${type}'; this backend runs ${Object.keys(families).join(", ")}`,
    )
  const scores = isClassifier(json)
  const model = family(json, scores, folder)
  if (scores) {
    checkLabels(json)
    if (!model.score) throw new Unsupported(`it is a classifier of the family '${type}'`)
  }
  return { model, scores }
}

const widthOf = (
  path: string,
  model: EncoderModel,
  pooling: readonly PoolingMode[],
  steps: readonly PoolingStep[],
): number => {
  let width = model.pooled?.width ?? model.config.width * pooling.length
  for (const step of steps)
    if (step.type !== "normalize") {
      const inputs = step.type === "dense" ? step.inputs : step.width
      if (inputs !== width)
        throw new ModelFileError(
          join(path, step.folder, configFile),
          `it takes ${inputs} numbers, and is given ${width}`,
        )
      width = step.type === "dense" ? step.outputs : width
    }
  return width
}

const optionPooling = { cls: "cls", mean: "mean", last: "lasttoken" } as const

/** Reads the files of an encoder that are not its weights. Throws `ModelFileError`. */
export const folderEncoder = (path: string, options: EncoderOptions = {}): FolderEncoder => {
  const file = join(path, configFile)
  const json = readJson(path, configFile)
  const { model, scores } = explaining(file, () => modelOf(json, path))
  const files = sentenceFiles(path)
  const config = {
    ...model.config,
    maxTokens: Math.min(model.config.maxTokens, files.maxTokens ?? model.config.maxTokens),
  }
  if (options.pooling && model.pooled)
    throw new ModelFileError(
      file,
      `a model of the family '${config.family}' is pooled in its own way`,
      "Remove 'pooling' from the entry's options",
    )
  if (scores) return { model, head: { type: "score" }, config }
  checkVectors(path, {
    poolsItself: model.pooled !== undefined,
    isChosen: options.pooling !== undefined,
  })
  const chosen = options.pooling ? [optionPooling[options.pooling]] : files.pooling
  const pooling = model.pooled ? [] : (chosen ?? ["mean"])
  const isMatryoshka = options.matryoshka ?? json.has("matryoshka_dimensions")
  const all = widthOf(path, model, pooling, files.steps)
  const kept = Math.min(all, files.truncatedTo ?? all)
  if (kept > spaceDimensions && !isMatryoshka)
    throw new ModelFileError(
      path,
      `its vectors of ${kept} numbers don't fit the space of ${spaceDimensions}`,
      "If it was trained for shorter ones, say so in the entry's options: matryoshka: true",
    )
  const width = Math.min(kept, spaceDimensions)
  const isCut = all > width
  const { steps } = files
  const head: EncoderHead = { type: "vector", pooling, steps, width, isCut, isMatryoshka }
  return { model, head, config }
}
