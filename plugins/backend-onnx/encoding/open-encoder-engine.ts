import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import { type BertConfig, bertConfig } from "../architectures/bert-config.ts"
import { cachedGraph, digestOf, graphFile, knownIn } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import { openSafetensors } from "../weights/safetensors.ts"
import type { TensorFile } from "../weights/tensor-file.ts"
import type { EngineOpener } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { bertGraphVersion, buildBertGraph } from "./bert-graph.ts"
import {
  EmbedJob,
  type EmbedJobEvent,
  type EmbedJobRequest,
  type EncoderInfo,
} from "./embed-job.ts"
import { EncoderRunner } from "./encoder-runner.ts"
import { mapVersion, spaceDimensions } from "./stacked-rotations.ts"

// 40 ms for 22 million parameters; longer steps add latency and no throughput
const stepTokensPerThread = 128
const weightsFile = "model.safetensors"
const digestFile = "weights.sha256"

/**
 * Hashes all tensors by name and content in a fixed order: files with the same weights produce the
 * same vectors.
 */
const digestOfWeights = (file: TensorFile): string => {
  const hash = createHash("sha256")
  const names = [...file.header.tensors.keys()].sort()
  for (const name of names) {
    const entry = file.tensor(name)
    hash.update(`${name} ${entry.type.name} ${entry.rows}x${entry.columns}\n`)
    for (let row = 0; row < entry.rows; row += 4096)
      hash.update(file.rows(entry, row, Math.min(4096, entry.rows - row)))
  }
  return hash.digest("hex").slice(0, 12)
}

const graphOf = (
  spec: EngineSpec,
  file: TensorFile,
  config: BertConfig,
  progress: (detail: string) => void,
): string => {
  const digest = digestOf([
    "bert",
    bertGraphVersion,
    mapVersion,
    knownIn(spec.graphs).of(file.path),
    spec.precision,
    config,
  ])
  return cachedGraph(spec.graphs, digest, (graph, folder) => {
    writeFileSync(join(folder, digestFile), digestOfWeights(file))
    buildBertGraph({ graph, config, file, precision: spec.precision }, progress)
  })
}

const checkTokenizer = (folder: string, vocabulary: number): void => {
  const path = join(folder, "tokenizer.json")
  let size: number
  try {
    size = Tokenizer.fromFile(path).getVocabSize(true)
  } catch (cause) {
    throw new ModelFileError(path, `it can't be used (${(cause as Error).message})`)
  }
  if (size > vocabulary)
    throw new ModelFileError(path, `it has ${size} tokens, the embedding table ${vocabulary}`)
}

const builtGraph = (
  spec: EngineSpec,
  config: BertConfig,
  progress: (detail: string) => void,
): string => {
  const file = openSafetensors(join(spec.path, weightsFile))
  try {
    return file.explain(() => graphOf(spec, file, config, progress))
  } finally {
    file.close()
  }
}

/**
 * Opens a folder with a sentence encoder of the BERT family: config.json, tokenizer.json,
 * model.safetensors.
 */
export const openEncoderEngine: EngineOpener<
  EmbedJobRequest,
  EmbedJobEvent,
  EncoderInfo,
  EmbedJob
> = async (spec, progress) => {
  progress("reading weights")
  const config = bertConfig(spec.path)
  if (config.width > spaceDimensions)
    throw new ModelFileError(
      spec.path,
      `its vectors of ${config.width} numbers don't fit the space of ${spaceDimensions}`,
    )
  checkTokenizer(spec.path, config.vocabulary)
  const folder = builtGraph(spec, config, progress)
  progress("loading the graph")
  const session = await openSession(join(folder, graphFile), spec.threads)
  return {
    info: {
      maxTokens: config.maxTokens,
      vocabulary: config.vocabulary,
      name: config.name,
      digest: readFileSync(join(folder, digestFile), "utf8"),
    },
    runner: new EncoderRunner(session, stepTokensPerThread * spec.threads),
    start: (job, emit) => new EmbedJob(job, emit),
    close: () => session.release(),
  }
}
