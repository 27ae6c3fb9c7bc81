import { basename } from "node:path"
import { isKnownArchitecture } from "../architectures/folder-config.ts"
import { openModelSource, readModelHeader } from "../architectures/model-source.ts"
import { templateStyle } from "../chat-format/template-style.ts"
import { cachedFolder, digestOf } from "../onnx/graph-cache.ts"
import { hasKernels } from "../onnx/kernels.ts"
import { ownBits, type Precision } from "../onnx/linear.ts"
import { chatTokenizerVersion, writeChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { folderLanguage } from "../tokenizer/folder-language.ts"
import { type ChatLanguage, idsOfWords, type Vocabulary } from "../tokenizer/vocabulary.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { hasWeights } from "../weights/safetensors-folder.ts"
import type { Decoder, DecoderSession } from "./decoder.ts"
import { type ExportedModel, findExport } from "./exported-config.ts"
import { ExportedSession } from "./exported-session.ts"
import {
  type DecoderSpec,
  hasAdapters,
  openedByRuntime,
  openGraphs,
  type Progress,
} from "./open-graphs.ts"

const noBytes = new Uint8Array()

/** Keeps the bytes of all tokens in one buffer, and returns views of it. */
const tokenBytes = (vocabulary: Vocabulary): ((id: number) => Uint8Array) => {
  const parts = vocabulary.tokens.map((_, id) => vocabulary.bytesOf(id))
  const ends = new Uint32Array(parts.length)
  let end = 0
  for (const [id, part] of parts.entries()) {
    end += part.length
    ends[id] = end
  }
  const all = Buffer.concat(parts)
  return (id) => all.subarray(id === 0 ? 0 : ends[id - 1], ends[id])
}

const decoderOf = (
  session: DecoderSession,
  folders: readonly string[],
  { vocabulary, endTokens, startsWithSpace, template, toolTemplate, ...more }: ChatLanguage,
  isBuilt: boolean,
): Decoder => {
  const bytesOf = tokenBytes(vocabulary)
  const templates = toolTemplate === undefined ? [template] : [template, toolTemplate]
  const { advisedTemperature } = more
  return {
    session,
    folder: folders[0]!,
    digest: folders.map((folder) => basename(folder)).join("-"),
    endTokens: new Set(endTokens),
    // an embedding table may have more rows than the vocabulary has tokens
    bytesOf: (id) => (id < vocabulary.tokens.length ? bytesOf(id) : noBytes),
    idsOf: (words) => idsOfWords(vocabulary, bytesOf, words),
    startsWithSpace,
    thinks: templates.some((each) => templateStyle(each).thinks),
    isDated: templates.some((each) => /\bstrftime_now\b/.test(each)),
    ...(advisedTemperature !== undefined && { advisedTemperature }),
    roundingDiffers: isBuilt && !session.isInvariant,
  }
}

/** Throws `ModelFileError` for what an export can't do. */
export const checkExport = (
  { graph }: ExportedModel,
  spec: Pick<DecoderSpec, "adapters" | "promptPrecision">,
): void => {
  const lacks = hasAdapters(spec)
    ? "takes no adapters"
    : spec.promptPrecision && "has no promptPrecision"
  if (lacks)
    throw new ModelFileError(
      graph,
      `it is a ready-made graph, which ${lacks}`,
      "Name the model's safetensors or GGUF file",
    )
}

const openExport = async (spec: DecoderSpec, model: ExportedModel): Promise<Decoder> => {
  checkExport(model, spec)
  const session = await openedByRuntime(model.graph, "Pull it again (`rakit models pull`)", () =>
    ExportedSession.open(model, spec.threads),
  )
  try {
    const language = folderLanguage(model.folder, session.shape.vocabulary)
    const digest = digestOf(["language", chatTokenizerVersion, language])
    const folder = explaining(model.folder, () =>
      cachedFolder(spec.graphs, digest, (empty) => writeChatTokenizer(language, empty)),
    )
    return decoderOf(session, [folder], language, false)
  } catch (cause) {
    await session.close()
    throw cause
  }
}

const openBuilt = async (spec: DecoderSpec, progress: Progress): Promise<Decoder> => {
  const source = openModelSource(spec.path)
  try {
    const { session, folders } = await openGraphs(spec, source, progress)
    const close = async () => {
      await session.close()
      source.close()
    }
    return decoderOf({ ...session, close }, folders, source.language, true)
  } catch (cause) {
    source.close()
    throw cause
  }
}

/**
 * A graph built here is faster than an export, so exports are used for other architectures only.
 */
const canBuild = (path: string): boolean => hasWeights(path) && isKnownArchitecture(path)

/** The export that a decoder is opened from; undefined where its graph is built here. */
export const exportIn = (path: string, precision: Precision): ExportedModel | undefined =>
  canBuild(path) ? undefined : findExport(path, precision)

/**
 * What `auto` comes to where all matrices of the model's layers come to the same: entries share an
 * engine by file and precision.
 */
export const settledPrecision = (path: string, precision: Precision): Precision => {
  if (precision !== "auto") return precision
  if (exportIn(path, precision)) return "int8"
  const types = readModelHeader(path).matrixTypes
  if (types.length && types.every((type) => ownBits(type, false) === 4)) return "int4"
  return types.some((type) => ownBits(type, hasKernels()) < 8) ? "auto" : "int8"
}

/**
 * Opens a decoder: a GGUF file, a folder with safetensors, or a ready-made export. Throws
 * `ModelFileError`. Blocks the thread: for workers only.
 */
export const openDecoder = async (spec: DecoderSpec, progress: Progress): Promise<Decoder> => {
  progress("reading weights")
  try {
    const exported = exportIn(spec.path, spec.precision)
    return await (exported ? openExport(spec, exported) : openBuilt(spec, progress))
  } catch (cause) {
    if (cause instanceof ModelFileError) throw cause
    throw new ModelFileError(spec.path, `it can't be opened (${(cause as Error).message})`)
  }
}
