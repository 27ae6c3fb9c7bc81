import { statSync } from "node:fs"
import { join } from "node:path"
import { folderLanguage, folderTemplate, languageFiles } from "../tokenizer/folder-language.ts"
import { ggufLanguage, ggufTemplate } from "../tokenizer/gguf-language.ts"
import type { ChatLanguage } from "../tokenizer/vocabulary.ts"
import type { Content } from "../weights/content-digest.ts"
import type { GgmlType } from "../weights/ggml-types.ts"
import { ggufAt, openGgufModel } from "../weights/gguf-parts.ts"
import type { KnownContents } from "../weights/known-contents.ts"
import { explaining } from "../weights/model-file-error.ts"
import { hasWeights, openSafetensorsFolder, weightFilesIn } from "../weights/safetensors-folder.ts"
import type { TensorSource } from "../weights/tensor-file.ts"
import type { DecoderConfig } from "./decoder-config.ts"
import { DecoderWeights } from "./decoder-weights.ts"
import { configFile, folderConfig } from "./folder-config.ts"
import { ggufConfig } from "./gguf-config.ts"
import { folderNames, ggufNames, type LayerMatrix, type TensorNames } from "./tensor-names.ts"

/** The open files of a decoder: what its graph is built from. */
export interface ModelSource {
  readonly config: DecoderConfig
  readonly weights: DecoderWeights
  readonly language: ChatLanguage
  /** Digests of every file that the graph depends on. */
  contents(known: KnownContents, progress: (percent: number) => void): readonly Content[]
  close(): void
}

const readAll = (
  paths: readonly string[],
  known: KnownContents,
  progress: (percent: number) => void,
): readonly Content[] => {
  const present = paths.filter((path) => statSync(path, { throwIfNoEntry: false }))
  const total = present.reduce((sum, path) => sum + statSync(path).size, 0)
  let before = 0
  return present.map((path) => {
    const content = known.of(path, (bytes) =>
      progress(Math.floor((100 * (before + bytes)) / Math.max(1, total))),
    )
    before += content.bytes
    return content
  })
}

/** Runs `part` after the weights were opened, and closes them when it fails. */
const opened = <A>(source: TensorSource, part: () => A): A => {
  try {
    return explaining(source.path, part)
  } catch (cause) {
    source.close()
    throw cause
  }
}

const openFile = (path: string): ModelSource => {
  const file = openGgufModel(path)
  return opened(file, () => {
    const config = ggufConfig(file)
    return {
      config,
      weights: new DecoderWeights(
        file,
        ggufNames(config.architecture),
        config,
        config.architecture === "llama" || config.architecture === "smollm3",
      ),
      language: ggufLanguage(file.header.metadata, config.vocabulary),
      contents: (known, progress) => readAll(file.files, known, progress),
      close: () => file.close(),
    }
  })
}

/** So many rows are compared at once. */
const rowsAtOnce = 1024

/**
 * Whether the head is the embedding: checkpoints whose head was trained may still say that it is
 * tied, and transformers then takes what is stored.
 */
const isTied = (source: TensorSource, { embedding, head }: TensorNames): boolean => {
  if (!source.has(`${head}.weight`)) return true
  const [one, other] = [source.tensor(`${embedding}.weight`), source.tensor(`${head}.weight`)]
  if (one.type !== other.type || one.rows !== other.rows || one.columns !== other.columns)
    return false
  for (let row = 0; row < one.rows; row += rowsAtOnce) {
    const count = Math.min(rowsAtOnce, one.rows - row)
    if (!source.rows(one, row, count).equals(source.rows(other, row, count))) return false
  }
  return true
}

const openFolder = (path: string): ModelSource => {
  const named = folderConfig(path)
  const source = openSafetensorsFolder(path)
  return opened(source, () => {
    const names = folderNames(named.architecture, source)
    const config = { ...named, tiedHead: named.tiedHead && isTied(source, names) }
    return {
      config,
      weights: new DecoderWeights(source, names, config, false),
      language: folderLanguage(path, config.vocabulary),
      contents: (known, progress) =>
        readAll(
          [configFile, ...languageFiles, ...weightFilesIn(path)].map((name) => join(path, name)),
          known,
          progress,
        ),
      close: () => source.close(),
    }
  })
}

/** Returns the GGUF file that a path stands for; undefined for a folder of safetensors or without one. */
const ggufOf = (path: string): string | undefined => (hasWeights(path) ? undefined : ggufAt(path))

/**
 * Opens a GGUF file (or a folder with one, or its parts), or a folder with config.json and
 * safetensors. Throws `ModelFileError`. Blocks the thread: for workers only.
 */
export const openModelSource = (path: string): ModelSource => {
  const file = ggufOf(path)
  return file === undefined ? openFolder(path) : openFile(file)
}

/** What a decoder's files say of it before its weights and its vocabulary. */
export interface ModelHeader {
  readonly config: DecoderConfig
  readonly template: string
  /** The types of its layers' matrices; none for a folder, whose numbers are floats. */
  readonly matrixTypes: readonly GgmlType[]
  /** The type of a matrix of a layer; undefined for a folder. */
  typeOf(layer: number, part: LayerMatrix): GgmlType | undefined
}

const fileHeader = (path: string): ModelHeader => {
  const file = openGgufModel(path)
  try {
    return explaining(path, () => {
      const config = ggufConfig(file)
      const { metadata, tensors } = file.header
      const names = ggufNames(config.architecture)
      return {
        config,
        template: ggufTemplate(metadata),
        matrixTypes: [...tensors.values()]
          .filter(({ name, rows }) => rows > 1 && name.startsWith("blk."))
          .map(({ type }) => type),
        typeOf: (layer, part) =>
          tensors.get(`${names.layer(layer)}${names.parts[part]}.weight`)?.type,
      }
    })
  } finally {
    file.close()
  }
}

const folderHeader = (path: string): ModelHeader => ({
  config: folderConfig(path),
  template: folderTemplate(path),
  matrixTypes: [],
  typeOf: () => undefined,
})

/** Reads the header of what `openModelSource` opens. Throws `ModelFileError`. */
export const readModelHeader = (path: string): ModelHeader => {
  const file = ggufOf(path)
  return file === undefined ? folderHeader(path) : fileHeader(file)
}
