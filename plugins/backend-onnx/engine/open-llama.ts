import { statSync } from "node:fs"
import { cachedGraph, digestOf } from "../onnx/graph-cache.ts"
import { type LlamaConfig, llamaConfig } from "../onnx/llama-config.ts"
import { buildLlamaGraph, llamaGraphVersion } from "../onnx/llama-graph.ts"
import { writeChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { endTokens, idsOfWords, type Vocabulary, vocabularyOf } from "../tokenizer/vocabulary.ts"
import { type GgufFile, openGguf } from "../weights/gguf-file.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import { GenerateJob } from "./generate-job.ts"
import type { LlamaEvent, LlamaInfo, LlamaRequest } from "./llama-jobs.ts"
import { LlamaSession } from "./llama-session.ts"
import type { EngineOpener } from "./open-engine.ts"
import type { EngineSpec } from "./protocol.ts"
import { ScoreJob } from "./score-job.ts"
import { tokenBytes } from "./token-bytes.ts"

const spellings = (word: string): readonly string[] =>
  [word, ` ${word}`, word.toUpperCase(), ` ${word.toUpperCase()}`].flatMap((w) => [w, w.replace(/[a-z]/, (first) => first.toUpperCase())])

const graphOf = (spec: EngineSpec, file: GgufFile, config: LlamaConfig, vocabulary: Vocabulary, progress: (detail: string) => void): string => {
  const { size, mtimeMs } = statSync(spec.path)
  const digest = digestOf(["llama", llamaGraphVersion, spec.path, size, mtimeMs, spec.precision])
  return cachedGraph(spec.graphs, digest, (graph, folder) => {
    writeChatTokenizer(file, vocabulary, folder)
    buildLlamaGraph({ graph, config, file, precision: spec.precision }, progress)
  })
}

const sessionOf = async (spec: EngineSpec, file: GgufFile, config: LlamaConfig, folder: string): Promise<LlamaSession> => {
  try {
    return await LlamaSession.open(config, file, folder, spec.threads)
  } catch (cause) {
    throw new ModelFileError(folder, `ONNX Runtime can't open the graph built from ${spec.path}; remove the folder to have it built again (${(cause as Error).message})`)
  }
}

/** Opens a GGUF file of the Llama family. */
export const openLlama: EngineOpener<LlamaRequest, LlamaEvent, LlamaInfo> = async (spec, progress) => {
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
    const model = { session, endTokens: opened.endTokens, bytesOf: tokenBytes(vocabulary) }
    const words = (word: string) => idsOfWords(vocabulary, spellings(word))
    return {
      info: { folder, contextTokens: config.contextTokens, vocabulary: config.vocabulary, yesTokens: words("yes"), noTokens: words("no") },
      start: (job, emit) => (job.kind === "generate" ? new GenerateJob(model, job, emit) : new ScoreJob(model, job, emit)),
      close: () => session.close(),
    }
  } catch (cause) {
    file.close()
    throw cause
  }
}
