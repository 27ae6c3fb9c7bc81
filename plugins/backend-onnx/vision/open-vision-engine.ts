import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Picture } from "../architectures/image-preprocessing.ts"
import { EmbedJob, type EmbedJobEvent } from "../encoding/embed-job.ts"
import { EncoderRunner } from "../encoding/encoder-runner.ts"
import { digestOfWeights } from "../encoding/open-encoder-engine.ts"
import { mapVersion, spaceDimensions } from "../encoding/stacked-rotations.ts"
import { cachedGraph, digestOf, graphFile, knownIn } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { openSafetensorsFolder, weightFilesIn } from "../weights/safetensors-folder.ts"
import type { EngineOpener } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { pictureFeeds } from "./picture-feeds.ts"
import { type VisionConfig, visionConfig } from "./vision-config.ts"
import { buildVisionGraph, visionGraphVersion } from "./vision-graph.ts"
import type { VisionInfo, VisionJobRequest } from "./vision-job.ts"

/**
 * Pictures of a step: few, as larger ones add latency and, measured with EfficientNet-Lite0, no
 * throughput; products over a transformer's tokens gain up to some hundreds of them.
 */
const stepImages = ({ tower, preprocessing: { resize } }: VisionConfig): number => {
  if (tower.family === "efficientnet_lite") return 4
  const tokens = resize.mode === "patches" ? resize.most : tower.grid ** 2
  return Math.max(1, Math.min(8, Math.floor(400 / tokens)))
}

const digestFile = "weights.sha256"

const graphOf = (
  spec: EngineSpec,
  config: VisionConfig,
  progress: (detail: string) => void,
): string => {
  const known = knownIn(spec.graphs)
  const contents = weightFilesIn(spec.path).map((name) => known.of(join(spec.path, name)))
  const digest = digestOf(["vision", visionGraphVersion, contents, spec.precision, config])
  return cachedGraph(spec, digest, (graph, folder) => {
    const file = openSafetensorsFolder(spec.path)
    try {
      explaining(file.path, () => {
        writeFileSync(join(folder, digestFile), digestOfWeights(file))
        buildVisionGraph({ graph, file, precision: spec.precision }, config, progress)
      })
    } finally {
      file.close()
    }
  })
}

/** Opens a folder with a vision tower: config.json, preprocessor_config.json, safetensors. */
export const openVisionEngine: EngineOpener<
  VisionJobRequest,
  EmbedJobEvent,
  VisionInfo,
  EmbedJob<Picture>
> = async (spec, progress) => {
  progress("reading weights")
  const config = visionConfig(spec.path, spec.encoder?.matryoshka)
  if (config.width > spaceDimensions)
    throw new ModelFileError(
      spec.path,
      `its vectors of ${config.width} numbers don't fit the space of ${spaceDimensions}`,
    )
  const folder = graphOf(spec, config, progress)
  progress("loading the graph")
  const session = await openSession(join(folder, graphFile), spec.threads)
  return {
    info: {
      preprocessing: config.preprocessing,
      name: config.name,
      digest: readFileSync(join(folder, digestFile), "utf8"),
      width: config.width,
      map: mapVersion(config.isMatryoshka),
    },
    runner: new EncoderRunner(session, stepImages(config), pictureFeeds(config)),
    // pictures have one size, or about as many squares, so each counts one
    start: (job, emit) => new EmbedJob(job.images, () => 1, emit),
    close: () => session.release(),
  }
}
