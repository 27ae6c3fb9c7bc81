import { statSync } from "node:fs"
import { tokenBytes } from "../engine/token-bytes.ts"
import { cachedGraph, digestOf } from "../onnx/graph-cache.ts"
import type { Precision } from "../onnx/linear.ts"
import { type LlamaConfig, llamaConfig } from "../onnx/llama-config.ts"
import { buildLlamaGraph, llamaGraphVersion } from "../onnx/llama-graph.ts"
import { writeChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { endTokens, idsOfWords, type Vocabulary, vocabularyOf } from "../tokenizer/vocabulary.ts"
import { type GgufFile, openGguf } from "../weights/gguf-file.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import type { Decoder } from "./decoder.ts"
import { DeltaSession, type Embed } from "./delta-session.ts"

export interface DecoderSpec {
  readonly path: string
  /** Where built graphs are kept. */
  readonly graphs: string
  readonly precision: Precision
  readonly threads: number
}

const graphOf = (spec: DecoderSpec, file: GgufFile, config: LlamaConfig, vocabulary: Vocabulary, progress: (detail: string) => void): string => {
  const { size, mtimeMs } = statSync(spec.path)
  const digest = digestOf(["llama", llamaGraphVersion, spec.path, size, mtimeMs, spec.precision])
  return cachedGraph(spec.graphs, digest, (graph, folder) => {
    writeChatTokenizer(file, vocabulary, folder)
    buildLlamaGraph({ graph, config, file, precision: spec.precision }, progress)
  })
}

const embeddingOf = (file: GgufFile, width: number): Embed => {
  const table = file.tensor("token_embd.weight")
  return (ids) => {
    const out = new Float32Array(ids.length * width)
    for (let i = 0; i < ids.length; i++) table.type.decode(file.rows(table, ids[i]!, 1), out.subarray(i * width, (i + 1) * width))
    return out
  }
}

const sessionOf = async (spec: DecoderSpec, file: GgufFile, config: LlamaConfig, folder: string): Promise<DeltaSession> => {
  try {
    return await DeltaSession.open(folder, spec.threads, config, embeddingOf(file, config.width))
  } catch (cause) {
    throw new ModelFileError(folder, `ONNX Runtime can't open the graph built from ${spec.path}; remove the folder to have it built again (${(cause as Error).message})`)
  }
}

/** Opens a chat model's files; throws `ModelFileError`. Blocks: for worker threads only. */
export const openDecoder = async (spec: DecoderSpec, progress: (detail: string) => void): Promise<Decoder> => {
  progress("reading weights")
  const file = openGguf(spec.path)
  try {
    const opened = file.explain(() => {
      const config = llamaConfig(file)
      const vocabulary = vocabularyOf(file, config.vocabulary)
      return { config, vocabulary, endTokens: new Set(endTokens(file, vocabulary)), folder: graphOf(spec, file, config, vocabulary, progress) }
    })
    const { config, vocabulary, folder } = opened
    progress("loading the graph")
    const session = await sessionOf(spec, file, config, folder)
    const close = async () => {
      await session.close()
      file.close()
    }
    return {
      session: { shape: config, step: (step) => session.step(step), close },
      folder,
      endTokens: opened.endTokens,
      bytesOf: tokenBytes(vocabulary),
      idsOf: (words) => idsOfWords(vocabulary, words),
      startsWithSpace: false,
    }
  } catch (cause) {
    file.close()
    throw cause
  }
}
