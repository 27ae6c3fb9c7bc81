import type { ModelSource } from "../architectures/model-source.ts"
import { adapterGraphVersion } from "../onnx/adapter-inputs.ts"
import { buildDecoderGraph, decoderGraphVersion } from "../onnx/decoder-graph.ts"
import { cachedGraph, digestOf, type GraphPlace, knownIn } from "../onnx/graph-cache.ts"
import type { Precision } from "../onnx/linear.ts"
import type { Port } from "../onnx/onnx-session.ts"
import { chatTokenizerVersion, writeChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { AdapterFeeds } from "./adapter-feeds.ts"
import type { AdapterSpec } from "./adapter-memory.ts"
import { writeAttention } from "./attention-probe.ts"
import { BuiltSession } from "./built-session.ts"
import type { DecoderSession } from "./decoder.ts"
import { writeUpload } from "./device-adapters.ts"
import { writeKvGraphs } from "./device-kv.ts"
import { DeviceSession } from "./device-session.ts"
import { checkDigits, writeDigits } from "./digits-probe.ts"
import { roundsAlikeWith, runProbe, writeProbe } from "./rounding-probe.ts"

export interface DecoderSpec extends GraphPlace {
  readonly path: string
  readonly precision: Precision
  /** Prompts are read by weights in this precision; absent: by those that answers are written with. */
  readonly promptPrecision?: Precision
  readonly threads: number
  readonly adapters?: readonly AdapterSpec[]
  /** The most memory that adapters may take. */
  readonly adapterBytes?: number
  /** It runs on a device, and not on the CPU. */
  readonly device?: { readonly maxBufferBytes: number }
}

/** One graph of a decoder: those of one decoder read the same cache. */
interface GraphSpec extends DecoderSpec {
  /** fp32 is of floats throughout. */
  readonly floatKv: boolean
}

/** Increment it whenever graphs for devices must be built again. */
const deviceGraphVersion = 2

export type Progress = (detail: string) => void

export const hasAdapters = ({ adapters = [] }: Pick<DecoderSpec, "adapters">): boolean =>
  adapters.length > 0

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

const graphOf = (spec: GraphSpec, source: ModelSource, progress: Progress): string => {
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
    ...(spec.floatKv ? ["float-kv"] : []),
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
      floatKv: spec.floatKv,
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

export const openedByRuntime = async <A>(
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

type BuiltDecoder = BuiltSession | DeviceSession

/** The precisions of the graphs of a decoder: that of prompts only where it is another one. */
export const precisionsOf = ({
  precision,
  promptPrecision,
  device,
}: Pick<DecoderSpec, "precision" | "promptPrecision" | "device">): readonly Precision[] =>
  promptPrecision === undefined || promptPrecision === precision || device
    ? [precision]
    : [precision, promptPrecision]

const openGraph = async (
  spec: GraphSpec,
  source: ModelSource,
  progress: Progress,
): Promise<{ readonly session: BuiltDecoder; readonly folder: string }> => {
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
  const remedy = "It was built from the model's files: remove the folder to have it built again"
  return { folder, session: await openedByRuntime(folder, remedy, open) }
}

/** Whether a row has the same bits in any company, with adapters, too. */
const isInvariant = (graph: BuiltDecoder): Promise<boolean> | boolean =>
  graph instanceof BuiltSession && graph.isInvariant
    ? roundsAlikeWith(graph, graph.adaptersSplitByCompany)
    : graph.isInvariant

/** One session of all graphs: the first writes answers, the last reads prompts. */
const sessionOf = (
  spec: DecoderSpec,
  graphs: readonly BuiltDecoder[],
  rounding: Pick<DecoderSession, "isInvariant">,
  close: () => Promise<void>,
): DecoderSession => {
  const [steps, prompts] = graphs
  return {
    shape: steps!.shape,
    ...rounding,
    forward: (pass) => steps!.forward(pass),
    ...(prompts && { readPrompt: (pass) => prompts.forward(pass) }),
    newStore: (capacity) => steps!.newStore(capacity),
    mostTokens: steps!.mostTokens,
    ...(!(steps instanceof DeviceSession) && {
      tokenBytes: steps!.tokenBytes,
      chunkTokens: steps!.chunkTokens,
    }),
    ...(hasAdapters(spec) && {
      adapterBytes: () => graphs.reduce((sum, graph) => sum + graph.adapterBytes(), 0),
    }),
    close,
  }
}

/**
 * Opens the graphs of a decoder as one session, of which `folders` are: the first has its tokenizer.
 * Throws `ModelFileError`.
 */
export const openGraphs = async (
  spec: DecoderSpec,
  source: ModelSource,
  progress: Progress,
): Promise<{ readonly session: DecoderSession; readonly folders: readonly string[] }> => {
  const opened: Awaited<ReturnType<typeof openGraph>>[] = []
  const close = async () => {
    for (const { session } of opened) await session.close()
  }
  try {
    const precisions = precisionsOf(spec)
    const adapterBytes = spec.adapterBytes && spec.adapterBytes / precisions.length
    const floatKv = spec.precision === "fp32"
    for (const precision of precisions)
      opened.push(
        await openGraph(
          { ...spec, precision, floatKv, ...(adapterBytes && { adapterBytes }) },
          source,
          progress,
        ),
      )
    const graphs = opened.map(({ session }) => session)
    const alike = await Promise.all(graphs.map(isInvariant))
    return {
      session: sessionOf(spec, graphs, { isInvariant: alike.every(Boolean) }, close),
      folders: opened.map(({ folder }) => folder),
    }
  } catch (cause) {
    await close()
    throw cause
  }
}
