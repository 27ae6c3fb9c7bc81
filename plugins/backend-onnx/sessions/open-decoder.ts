import { isKnownArchitecture } from "../architectures/folder-config.ts"
import {
  type ModelSource,
  openModelSource,
  readModelHeader,
} from "../architectures/model-source.ts"
import { templateStyle } from "../chat-format/template-style.ts"
import { adapterGraphVersion } from "../onnx/adapter-inputs.ts"
import { buildDecoderGraph, decoderGraphVersion } from "../onnx/decoder-graph.ts"
import {
  cachedFolder,
  cachedGraph,
  digestOf,
  type GraphPlace,
  knownIn,
} from "../onnx/graph-cache.ts"
import { isFourBits, type Precision } from "../onnx/linear.ts"
import type { Port } from "../onnx/onnx-session.ts"

import { chatTokenizerVersion, writeChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { folderLanguage } from "../tokenizer/folder-language.ts"
import type { Vocabulary } from "../tokenizer/vocabulary.ts"
import { type ChatLanguage, idsOfWords } from "../tokenizer/vocabulary.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { hasWeights } from "../weights/safetensors-folder.ts"
import { AdapterFeeds, type AdapterSpec } from "./adapter-feeds.ts"
import { writeAttention } from "./attention-probe.ts"
import { BuiltSession } from "./built-session.ts"
import type { Decoder, DecoderSession } from "./decoder.ts"
import { writeUpload } from "./device-adapters.ts"
import { writeKvGraphs } from "./device-kv.ts"
import { DeviceSession } from "./device-session.ts"
import { checkDigits, writeDigits } from "./digits-probe.ts"
import { type ExportedModel, findExport } from "./exported-config.ts"
import { ExportedSession } from "./exported-session.ts"
import { runProbe, writeProbe } from "./rounding-probe.ts"

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

export interface DecoderSpec extends GraphPlace {
  readonly path: string
  readonly precision: Precision
  readonly threads: number
  readonly adapters?: readonly AdapterSpec[]
  /** The most memory that adapters may take. */
  readonly adapterBytes?: number
  /** It runs on a device, and not on the CPU. */
  readonly device?: { readonly maxBufferBytes: number }
}

/** Increment it whenever graphs for devices must be built again. */
const deviceGraphVersion = 1

const noBytes = new Uint8Array()

type Progress = (detail: string) => void

const hasAdapters = ({ adapters = [] }: DecoderSpec): boolean => adapters.length > 0

/** Reads the adapters of the spec, if it has any. */
const adaptersOf = (spec: DecoderSpec, { config }: ModelSource, progress: Progress) => {
  const { adapters = [], adapterBytes = Number.POSITIVE_INFINITY } = spec
  if (!hasAdapters(spec)) return undefined
  return (inputs: readonly Port[]) => {
    progress("reading adapters")
    // ONNX Runtime's provider crashes where an input is empty
    const leastTiles = spec.device ? 1 : 0
    return AdapterFeeds.open(inputs, config, adapters, { maxBytes: adapterBytes, leastTiles })
  }
}

const graphOf = (spec: DecoderSpec, source: ModelSource, progress: Progress): string => {
  const { config, weights, language } = source
  const takesAdapters = hasAdapters(spec)
  const contents = source.contents(knownIn(spec.graphs), (percent) =>
    progress(`reading weights: ${percent} %`),
  )
  const digest = digestOf([
    "decoder",
    decoderGraphVersion,
    chatTokenizerVersion,
    contents,
    spec.precision,
    ...(takesAdapters ? ["adapters", adapterGraphVersion] : []),
    ...(spec.device ? ["device", deviceGraphVersion] : []),
  ])
  return cachedGraph(spec, digest, (graph, folder) => {
    writeChatTokenizer(language, folder)
    const building = {
      graph,
      config,
      weights,
      precision: spec.precision,
      adapters: takesAdapters,
    }
    buildDecoderGraph(building, (done, of) =>
      progress(`building the graph: ${Math.floor((100 * done) / of)} %`),
    )
    if (spec.device) {
      writeKvGraphs(folder, config)
      writeAttention(folder, config)
      if (takesAdapters) writeUpload(folder)
      return
    }
    writeProbe(folder, building)
    if (spec.precision === "int8-channel") writeDigits(folder)
  })
}

const openedByRuntime = async <A>(
  path: string,
  remedy: string,
  open: () => Promise<A>,
): Promise<A> => {
  try {
    return await open()
  } catch (cause) {
    if (cause instanceof ModelFileError) throw cause
    throw new ModelFileError(
      path,
      `ONNX Runtime can't open it (${(cause as Error).message})`,
      remedy,
    )
  }
}

const decoderOf = (
  session: DecoderSession,
  folder: string,
  { vocabulary, endTokens, startsWithSpace, template, advisedTemperature }: ChatLanguage,
  isBuilt: boolean,
): Decoder => {
  const bytesOf = tokenBytes(vocabulary)
  return {
    session,
    folder,
    endTokens: new Set(endTokens),
    // an embedding table may have more rows than the vocabulary has tokens
    bytesOf: (id) => (id < vocabulary.tokens.length ? bytesOf(id) : noBytes),
    idsOf: (words) => idsOfWords(vocabulary, words),
    startsWithSpace,
    thinks: templateStyle(template).thinks,
    isDated: /\bstrftime_now\b/.test(template),
    ...(advisedTemperature !== undefined && { advisedTemperature }),
    roundingDiffers: isBuilt && !session.isInvariant,
  }
}

const openExport = async (spec: DecoderSpec, model: ExportedModel): Promise<Decoder> => {
  if (hasAdapters(spec))
    throw new ModelFileError(
      model.graph,
      "it is a ready-made graph, which takes no adapters",
      "Name the model's safetensors or GGUF file",
    )
  const session = await openedByRuntime(model.graph, "Pull it again (`rakit models pull`)", () =>
    ExportedSession.open(model, spec.threads),
  )
  try {
    const language = folderLanguage(model.folder, session.shape.vocabulary)
    const digest = digestOf(["language", chatTokenizerVersion, language])
    const folder = explaining(model.folder, () =>
      cachedFolder(spec.graphs, digest, (empty) => writeChatTokenizer(language, empty)),
    )
    return decoderOf(session, folder, language, false)
  } catch (cause) {
    await session.close()
    throw cause
  }
}

const openBuilt = async (spec: DecoderSpec, progress: Progress): Promise<Decoder> => {
  const source = openModelSource(spec.path)
  try {
    const folder = explaining(spec.path, () => graphOf(spec, source, progress))
    progress("loading the graph")
    const embed = (ids: ArrayLike<number>) => source.weights.embed(ids)
    const open = async () => {
      const { threads, device } = spec
      const model = { shape: source.config, embed }
      const adapters = adaptersOf(spec, source, progress)
      if (device) return DeviceSession.open(folder, threads, { ...model, ...device }, adapters)
      if (spec.precision === "int8-channel") await checkDigits(folder, spec.path)
      const rounding = await runProbe(folder, threads, source.config, embed)
      return BuiltSession.open(folder, threads, { ...model, rounding }, adapters)
    }
    const session = await openedByRuntime(
      folder,
      "It was built from the model's files: remove the folder to have it built again",
      open,
    )
    const close = async () => {
      await session.close()
      source.close()
    }
    return decoderOf(
      {
        shape: session.shape,
        isInvariant: session.isInvariant,
        forward: (pass) => session.forward(pass),
        ...(session instanceof DeviceSession && {
          newStore: (capacity: number) => session.newStore(capacity),
          mostTokens: session.mostTokens,
        }),
        ...(hasAdapters(spec) && { adapterBytes: () => session.adapterBytes() }),
        close,
      },
      folder,
      source.language,
      true,
    )
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
  if (types.length && types.every(isFourBits)) return "int4"
  return types.some(isFourBits) ? "auto" : "int8"
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
