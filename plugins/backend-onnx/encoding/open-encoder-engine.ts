import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { cachedGraph, digestOf, graphFile, knownIn } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { loadEncoderTokenizer } from "../tokenizer/encoder-tokenizer.ts"
import type { Content } from "../weights/content-digest.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { openSafetensorsFolder, weightFilesIn } from "../weights/safetensors-folder.ts"
import type { TensorSource } from "../weights/tensor-file.ts"
import type { EngineOpener } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import {
  EmbedJob,
  type EmbedJobEvent,
  type EmbedJobRequest,
  type EncoderInfo,
  longestWindow,
  tokensOf,
} from "./embed-job.ts"
import { buildEncoderGraph, encoderGraphVersion } from "./encoder-graph.ts"
import { EncoderRunner, paddedPair, textFeeds } from "./encoder-runner.ts"
import { type FolderEncoder, folderEncoder } from "./families.ts"
import { pairPromptsIn, promptsIn } from "./prompts.ts"
import { mapVersion, spaceDimensions } from "./stacked-rotations.ts"

// 40 ms for 22 million parameters; longer steps add latency and no throughput
const stepTokensPerThread = 128
// a GPU is busy with thousands of rows only; not measured on one
const stepTokensOnDevice = 4096
// operators of short texts take about so long: asleep in between, threads take 1.6 times as long for
// a text of 8 tokens; awake for the default of a millisecond, other processes take their cores
const spinUs = 50
const digestFile = "weights.sha256"

/**
 * Hashes all tensors by name and content in a fixed order: files with the same weights produce the
 * same vectors.
 */
export const digestOfWeights = (file: TensorSource): string => {
  const hash = createHash("sha256")
  const names = [...file.names()].sort()
  for (const name of names) {
    const entry = file.tensor(name)
    hash.update(`${name} ${entry.type.name} ${entry.rows}x${entry.columns}\n`)
    for (let row = 0; row < entry.rows; row += 4096)
      hash.update(file.rows(entry, row, Math.min(4096, entry.rows - row)))
  }
  return hash.digest("hex").slice(0, 12)
}

/** Folders with weights of their own, which are a part of the model. */
const stepFolders = ({ head }: FolderEncoder): readonly string[] =>
  head.type === "vector"
    ? head.steps.flatMap((step) => (step.type === "normalize" ? [] : [step.folder]))
    : []

/**
 * The digest of all that makes a text's vector: the weights, how their states are pooled where it is
 * not the mean, which the ids of spaces left out from the beginning, and how many numbers are kept
 * where these are fewer than the space has.
 */
const digestOfModel = (
  file: TensorSource,
  { head }: FolderEncoder,
  parts: readonly Content[],
): string => {
  const weights = digestOfWeights(file)
  if (head.type === "score") return weights
  const isMean = head.pooling.every((mode) => mode === "mean")
  const cut = head.isCut && head.width < spaceDimensions ? [head.width] : []
  return isMean && parts.length === 0 && cut.length === 0
    ? weights
    : digestOf([weights, head.pooling, head.steps, parts, ...cut]).slice(0, 12)
}

const graphOf = (
  spec: EngineSpec,
  encoder: FolderEncoder,
  progress: (detail: string) => void,
): string => {
  const known = knownIn(spec.graphs)
  const contents = (folder: string) =>
    weightFilesIn(folder).map((name) => known.of(join(folder, name)))
  const parts = stepFolders(encoder).flatMap((folder) => contents(join(spec.path, folder)))
  const digest = digestOf([
    "encoder",
    encoderGraphVersion,
    [...contents(spec.path), ...parts],
    spec.precision,
    encoder.model.config,
    encoder.head,
  ])
  return cachedGraph(spec, digest, (graph, folder) => {
    progress("building the graph")
    const file = openSafetensorsFolder(spec.path)
    try {
      explaining(file.path, () => {
        writeFileSync(join(folder, digestFile), digestOfModel(file, encoder, parts))
        buildEncoderGraph({ graph, file, precision: spec.precision }, spec.path, encoder)
      })
    } finally {
      file.close()
    }
  })
}

const checkTokenizer = (folder: string, vocabulary: number): void => {
  const path = join(folder, "tokenizer.json")
  let size: number
  try {
    size = loadEncoderTokenizer(folder).getVocabSize(true)
  } catch (cause) {
    if (cause instanceof ModelFileError) throw cause
    throw new ModelFileError(path, `it can't be used (${(cause as Error).message})`)
  }
  if (size > vocabulary)
    throw new ModelFileError(path, `it has ${size} tokens, the embedding table ${vocabulary}`)
}

/**
 * Opens a folder with an encoder: config.json, tokenizer.json, weights as safetensors, and what
 * sentence-transformers stores beside them.
 */
export const openEncoderEngine: EngineOpener<
  EmbedJobRequest,
  EmbedJobEvent,
  EncoderInfo,
  EmbedJob
> = async (spec, progress) => {
  progress("reading weights")
  const encoder = folderEncoder(spec.path, spec.encoder)
  const {
    config,
    head,
    model: { readsTokens },
  } = encoder
  checkTokenizer(spec.path, config.vocabulary)
  const folder = graphOf(spec, encoder, progress)
  progress("loading the graph")
  const session = await openSession(join(folder, graphFile), spec.threads, { spinUs })
  const scores = head.type === "score"
  const maxTokens = Math.min(config.maxTokens, longestWindow)
  const padded = (length: number) => (scores ? paddedPair(length, maxTokens) : length)
  return {
    info: {
      maxTokens,
      vocabulary: config.vocabulary,
      name: config.name,
      prompts: scores ? pairPromptsIn(spec.path) : promptsIn(spec.path),
      digest: readFileSync(join(folder, digestFile), "utf8"),
      ...(!spec.device && { modelDigest: basename(folder) }),
      output: head.type,
      width: head.type === "vector" ? head.width : 1,
      map: mapVersion(head.type === "vector" && head.isMatryoshka),
    },
    runner: new EncoderRunner(
      session,
      spec.device ? stepTokensOnDevice : stepTokensPerThread * spec.threads,
      textFeeds(session, padded),
      { sameLength: scores },
    ),
    start: (job, emit) =>
      new EmbedJob(job.texts, (text) => readsTokens ?? padded(tokensOf(text)), emit),
    close: () => session.release(),
  }
}
