import { statSync } from "node:fs"
import { basename, join } from "node:path"
import type { Picture } from "../architectures/image-preprocessing.ts"
import { EmbedJob, type EmbedJobEvent } from "../encoding/embed-job.ts"
import { EncoderRunner } from "../encoding/encoder-runner.ts"
import { cachedGraph, digestOf, graphFile, knownIn } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { openSafetensorsFolder, weightFilesIn } from "../weights/safetensors-folder.ts"
import type { TensorSource } from "../weights/tensor-file.ts"
import type { EngineOpener } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { openMmproj } from "./mmproj-file.ts"
import { pictureFeeds } from "./picture-feeds.ts"
import { qwenFeeds } from "./qwen-feeds.ts"
import { type SightConfig, sightConfig, type TiledSight } from "./sight-config.ts"
import { buildSightGraph, projectedWidth, sightGraphVersion } from "./sight-graph.ts"
import type { VisionJobRequest } from "./vision-job.ts"

/** How images are made into tiles, and what those are for the decoder. */
export type SightInfo = Pick<TiledSight, "preprocessing" | "tiling" | "width" | "imageToken"> & {
  readonly family: SightConfig["family"]
  /** Tokens of a tile; undefined: an image is one, of as many tokens as its rows and columns say. */
  readonly tokens?: number
  /** Digest of its files, its precision and the graph. */
  readonly digest: string
}

const isFile = (path: string): boolean => statSync(path).isFile()

/** Opens the tensors of tower and connector: of a folder, or of a GGUF file. */
const openTensors = (path: string): TensorSource =>
  isFile(path) ? openMmproj(path) : openSafetensorsFolder(path)

const weightPaths = (path: string): readonly string[] =>
  isFile(path) ? [path] : weightFilesIn(path).map((name) => join(path, name))

/** The configuration, with the width that the projector really has. */
const configOf = (path: string): SightConfig => {
  const config = sightConfig(path)
  if (!config) throw new ModelFileError(path, "it has no tower that reads images")
  const file = openTensors(path)
  try {
    const width = explaining(path, () => projectedWidth(file, config))
    return { ...config, width }
  } finally {
    file.close()
  }
}

const graphOf = (spec: EngineSpec, config: SightConfig): string => {
  const known = knownIn(spec.graphs)
  const contents = weightPaths(spec.path).map((file) => known.of(file))
  const digest = digestOf(["sight", sightGraphVersion, contents, spec.precision, config])
  return cachedGraph(spec, digest, (graph) => {
    const file = openTensors(spec.path)
    try {
      explaining(file.path, () =>
        buildSightGraph({ graph, file, precision: spec.precision }, config),
      )
    } finally {
      file.close()
    }
  })
}

/** Tiles of a step: products over their tokens gain up to some hundreds of these. */
const stepTiles = (config: SightConfig): number =>
  config.family === "qwen" ? 1 : Math.max(1, Math.min(8, Math.floor(400 / config.tower.grid ** 2)))

/** Opens the part by which the chat model of a folder sees. Throws `ModelFileError`. */
export const openSightEngine: EngineOpener<
  VisionJobRequest,
  EmbedJobEvent,
  SightInfo,
  EmbedJob<Picture>
> = async (spec, progress) => {
  progress("reading weights")
  const config = configOf(spec.path)
  const folder = graphOf(spec, config)
  progress("loading the graph")
  const session = await openSession(join(folder, graphFile), spec.threads)
  const { family, preprocessing, width, imageToken } = config
  const tiles = family === "qwen" ? undefined : config
  return {
    info: {
      family,
      preprocessing,
      ...(tiles?.tiling && { tiling: tiles.tiling }),
      ...(tiles && { tokens: tiles.tokens }),
      width,
      ...(imageToken !== undefined && { imageToken }),
      digest: basename(folder),
    },
    runner: new EncoderRunner(
      session,
      stepTiles(config),
      config.family === "qwen" ? qwenFeeds(config.tower) : pictureFeeds(config),
    ),
    start: (job, emit) => new EmbedJob(job.images, () => 1, emit),
    close: () => session.release(),
  }
}
