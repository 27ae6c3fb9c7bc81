import { readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { Tokenizer } from "tokenizers"
import { prefixOf } from "../encoding/encoder-parts.ts"
import { cachedGraph, digestOf, knownIn, writeGraph } from "../onnx/graph-cache.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { openSafetensorsFolder, weightFilesIn } from "../weights/safetensors-folder.ts"
import type { EngineOpener } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { Stepped } from "../worker/stepped.ts"
import { SteppedRunner } from "../worker/stepped-runner.ts"
import { type HearingConfig, hearingConfig } from "./hearing-config.ts"
import {
  buildHearingDecoder,
  buildHearingEncoder,
  buildSpectrogram,
  hearingGraphVersion,
} from "./hearing-graphs.ts"
import { decoderFile, HearingSession, spectrogramFile } from "./hearing-session.ts"
import {
  type HearingInfo,
  type TranscribeJobEvent,
  type TranscribeJobRequest,
  Transcription,
} from "./transcribe-job.ts"

const tokenizerFile = "tokenizer.json"

const graphsOf = (
  spec: EngineSpec,
  config: HearingConfig,
  progress: (detail: string) => void,
): string => {
  const known = knownIn(spec.graphs)
  const contents = [...weightFilesIn(spec.path), tokenizerFile].map((name) =>
    known.of(join(spec.path, name)),
  )
  const { precision } = spec
  const digest = digestOf(["hearing", hearingGraphVersion, contents, precision, config])
  return cachedGraph(spec, digest, (graph, folder) => {
    const file = openSafetensorsFolder(spec.path)
    const prefix = prefixOf(file, "encoder.conv1.weight", ["model."])
    const { target } = graph
    try {
      explaining(file.path, () => {
        progress("building the graph of the encoder")
        buildHearingEncoder({ graph, file, precision }, prefix, config)
        progress("building the graph of the decoder")
        writeGraph(folder, { graph: decoderFile, weights: "decoder.bin", target }, (decoder) =>
          buildHearingDecoder({ graph: decoder, file, precision }, prefix, config),
        )
        const files = { graph: spectrogramFile, weights: "spectrogram.bin", target }
        writeGraph(folder, files, (waves) => buildSpectrogram(waves, config.spectrogram))
      })
    } finally {
      file.close()
    }
  })
}

const tokenizerOf = (folder: string): Tokenizer => {
  try {
    return Tokenizer.fromString(readFileSync(join(folder, tokenizerFile), "utf8"))
  } catch (cause) {
    throw new ModelFileError(
      folder,
      `its ${tokenizerFile} can't be used (${(cause as Error).message})`,
    )
  }
}

/** Opens a folder with a Whisper model: config.json, tokenizer.json, safetensors. */
export const openHearingEngine: EngineOpener<
  TranscribeJobRequest,
  TranscribeJobEvent,
  HearingInfo,
  Stepped
> = async (spec, progress) => {
  progress("reading weights")
  const config = hearingConfig(spec.path)
  const tokenizer = tokenizerOf(spec.path)
  const folder = graphsOf(spec, config, progress)
  progress("loading the graph")
  const session = await HearingSession.open(folder, spec.threads, config)
  const model = { session, tokenizer }
  return {
    info: {
      rate: config.spectrogram.rate,
      contextTokens: config.contextTokens,
      languages: Object.keys(config.tokens.languages),
      digest: basename(folder),
    },
    runner: new SteppedRunner(),
    start: (job, emit) => new Stepped((pause) => new Transcription(model, job, emit, pause).run()),
    close: () => session.close(),
  }
}
