import { basename, join } from "node:path"
import type { EmbedJobEvent } from "../encoding/embed-job.ts"
import { cachedGraph, digestOf, graphFile, knownIn, writeGraph } from "../onnx/graph-cache.ts"
import { longs, openSession, type Session } from "../onnx/onnx-session.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { openSafetensorsFolder, weightFilesIn } from "../weights/safetensors-folder.ts"
import type { EngineOpener } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { Stepped } from "../worker/stepped.ts"
import { SteppedRunner } from "../worker/stepped-runner.ts"
import { featuresOf, framesOf } from "./frames.ts"
import { buildSpectrogram } from "./hearing-graphs.ts"
import { spectrogramFile } from "./hearing-session.ts"
import { type ListeningConfig, listeningConfig, soundTokens } from "./listening-config.ts"
import { buildListening, listeningGraphVersion } from "./listening-graph.ts"

/** A sound that becomes rows for a decoder: mono, at the model's rate. */
export interface ListenJobRequest {
  readonly samples: Float32Array
}

/** The part by which a chat model hears, as the main thread sees it. */
export interface ListeningInfo extends Pick<ListeningConfig, "decoderWidth" | "audioToken"> {
  /** Samples a second that it reads, and from one frame to the next. */
  readonly rate: number
  readonly hop: number
  /** The longest sound. */
  readonly seconds: number
  /** Digest of its files, its precision and the graphs. */
  readonly digest: string
}

const graphsOf = (spec: EngineSpec, config: ListeningConfig): string => {
  const known = knownIn(spec.graphs)
  const contents = weightFilesIn(spec.path).map((name) => known.of(join(spec.path, name)))
  const { precision } = spec
  const digest = digestOf(["listening", listeningGraphVersion, contents, precision, config])
  return cachedGraph(spec, digest, (graph, folder) => {
    const file = openSafetensorsFolder(spec.path)
    try {
      explaining(file.path, () => {
        buildListening({ graph, file, precision }, config)
        const { target } = graph
        const files = { graph: spectrogramFile, weights: "spectrogram.bin", target }
        writeGraph(folder, files, (waves) => buildSpectrogram(waves, config.spectrogram))
      })
    } finally {
      file.close()
    }
  })
}

/** Opens the part by which the chat model of a folder hears. Throws `ModelFileError`. */
export const openListeningEngine: EngineOpener<
  ListenJobRequest,
  EmbedJobEvent,
  ListeningInfo,
  Stepped
> = async (spec, progress) => {
  progress("reading weights")
  const config = listeningConfig(spec.path)
  if (!config) throw new ModelFileError(spec.path, "it has no part that hears")
  const folder = graphsOf(spec, config)
  progress("loading the graph")
  const open: Session[] = []
  const close = async () => {
    for (const session of open) await session.release()
  }
  try {
    for (const name of [spectrogramFile, graphFile])
      open.push(await openSession(join(folder, name), spec.threads))
  } catch (cause) {
    await close()
    throw cause
  }
  const [spectrogram, encoder] = open as [Session, Session]
  const { spectrogram: sizes, states, decoderWidth, audioToken } = config
  const { rate, hop } = sizes
  const listen =
    ({ samples }: ListenJobRequest, emit: (event: EmbedJobEvent) => void) =>
    async (pause: () => Promise<void>) => {
      const startedMs = performance.now()
      const frames = await framesOf(spectrogram, sizes, samples, { least: 2 * states, pause })
      const features = featuresOf(frames, sizes, 0, 2 * states)
      const heard = Math.floor((Math.ceil(samples.length / hop) - 1) / 2) + 1
      const { rows } = await encoder.run({ features, states: longs([heard]) })
      const size = soundTokens(samples.length, hop) * decoderWidth
      emit({ type: "time", stage: "prefill", durationMs: performance.now() - startedMs })
      emit({ type: "vector", index: 0, vector: (rows!.data as Float32Array).slice(0, size) })
    }
  return {
    info: {
      ...{ rate, hop, decoderWidth, audioToken },
      seconds: (2 * states * hop) / rate,
      digest: basename(folder),
    },
    runner: new SteppedRunner(),
    start: (job, emit) => new Stepped(listen(job, emit)),
    close,
  }
}
