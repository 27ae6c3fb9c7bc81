import { tokenBytes } from "../engine/token-bytes.ts"
import { buildDecoderGraph, decoderGraphVersion } from "../onnx/decoder-graph.ts"
import { cachedGraph, digestOf } from "../onnx/graph-cache.ts"
import type { Precision } from "../onnx/linear.ts"
import { writeChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { idsOfWords } from "../tokenizer/vocabulary.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import type { Decoder } from "./decoder.ts"
import { DeltaSession } from "./delta-session.ts"
import { type ModelSource, openModelSource } from "./model-source.ts"

export interface DecoderSpec {
  readonly path: string
  /** Where built graphs are kept. */
  readonly graphs: string
  readonly precision: Precision
  readonly threads: number
}

const noBytes = new Uint8Array()

type Progress = (detail: string) => void

const graphOf = (spec: DecoderSpec, source: ModelSource, progress: Progress): string => {
  const { config, weights, language } = source
  const contents = source.contents((percent) => progress(`reading weights: ${percent} %`))
  const digest = digestOf(["decoder", decoderGraphVersion, contents, spec.precision])
  return cachedGraph(spec.graphs, digest, (graph, folder) => {
    writeChatTokenizer(language, folder)
    buildDecoderGraph({ graph, config, weights, precision: spec.precision }, (done, of) => progress(`building the graph: ${Math.floor((100 * done) / of)} %`))
  })
}

const sessionOf = async (spec: DecoderSpec, { config, weights }: ModelSource, folder: string): Promise<DeltaSession> => {
  try {
    return await DeltaSession.open(folder, spec.threads, config, (ids) => weights.embed(ids))
  } catch (cause) {
    throw new ModelFileError(
      spec.path,
      `ONNX Runtime can't open the graph that was built from it, ${folder} (${(cause as Error).message})`,
      "Remove that folder to have it built again",
    )
  }
}

/** Opens a chat model's files; throws `ModelFileError`. Blocks: for worker threads only. */
export const openDecoder = async (spec: DecoderSpec, progress: Progress): Promise<Decoder> => {
  progress("reading weights")
  const source = openModelSource(spec.path)
  try {
    const folder = explaining(spec.path, () => graphOf(spec, source, progress))
    progress("loading the graph")
    const session = await sessionOf(spec, source, folder)
    const { vocabulary, endTokens, startsWithSpace } = source.language
    const bytesOf = tokenBytes(vocabulary)
    const close = async () => {
      await session.close()
      source.close()
    }
    return {
      session: { shape: source.config, step: (step) => session.step(step), close },
      folder,
      endTokens: new Set(endTokens),
      // a table may be longer than the vocabulary
      bytesOf: (id) => (id < vocabulary.tokens.length ? bytesOf(id) : noBytes),
      idsOf: (words) => idsOfWords(vocabulary, words),
      startsWithSpace,
    }
  } catch (cause) {
    source.close()
    throw cause
  }
}
