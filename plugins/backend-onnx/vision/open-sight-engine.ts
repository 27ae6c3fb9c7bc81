import { join } from "node:path"
import type { Picture } from "../architectures/image-preprocessing.ts"
import { EmbedJob, type EmbedJobEvent } from "../encoding/embed-job.ts"
import { EncoderRunner } from "../encoding/encoder-runner.ts"
import { cachedGraph, digestOf, graphFile, knownIn } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { openSafetensorsFolder, weightFilesIn } from "../weights/safetensors-folder.ts"
import type { EngineOpener } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { pictureFeeds } from "./picture-feeds.ts"
import { type SightConfig, sightConfig } from "./sight-config.ts"
import { buildSightGraph, sightGraphVersion } from "./sight-graph.ts"
import type { VisionJobRequest } from "./vision-job.ts"

/** How images are made into tiles, and what those are for the decoder. */
export type SightInfo = Pick<
  SightConfig,
  "family" | "preprocessing" | "tiling" | "tokens" | "width" | "imageToken"
>

const graphOf = (spec: EngineSpec, config: SightConfig): string => {
  const known = knownIn(spec.graphs)
  const contents = weightFilesIn(spec.path).map((name) => known.of(join(spec.path, name)))
  const digest = digestOf(["sight", sightGraphVersion, contents, spec.precision, config])
  return cachedGraph(spec, digest, (graph) => {
    const file = openSafetensorsFolder(spec.path)
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
const stepTiles = ({ tower }: SightConfig): number =>
  Math.max(1, Math.min(8, Math.floor(400 / tower.grid ** 2)))

/** Opens the part by which the chat model of a folder sees. Throws `ModelFileError`. */
export const openSightEngine: EngineOpener<
  VisionJobRequest,
  EmbedJobEvent,
  SightInfo,
  EmbedJob<Picture>
> = async (spec, progress) => {
  progress("reading weights")
  const config = sightConfig(spec.path)
  if (!config) throw new ModelFileError(spec.path, "it has no tower that reads images")
  const folder = graphOf(spec, config)
  progress("loading the graph")
  const session = await openSession(join(folder, graphFile), spec.threads)
  const { family, preprocessing, tiling, tokens, width, imageToken } = config
  return {
    info: { family, preprocessing, ...(tiling && { tiling }), tokens, width, imageToken },
    runner: new EncoderRunner(session, stepTiles(config), pictureFeeds(config)),
    start: (job, emit) => new EmbedJob(job.images, () => 1, emit),
    close: () => session.release(),
  }
}
