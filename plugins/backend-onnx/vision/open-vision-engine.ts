import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Tensor } from "onnxruntime-node"
import { EmbedJob, type EmbedJobEvent } from "../encoding/embed-job.ts"
import { EncoderRunner, type Feeds } from "../encoding/encoder-runner.ts"
import { digestOfWeights } from "../encoding/open-encoder-engine.ts"
import { mapVersion, spaceDimensions } from "../encoding/stacked-rotations.ts"
import { cachedGraph, digestOf, graphFile, knownIn } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { explaining, ModelFileError } from "../weights/model-file-error.ts"
import { openSafetensorsFolder, weightFilesIn } from "../weights/safetensors-folder.ts"
import type { EngineOpener } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { type VisionConfig, visionConfig } from "./vision-config.ts"
import { buildVisionGraph, visionGraphVersion } from "./vision-graph.ts"
import type { VisionInfo, VisionJobRequest } from "./vision-job.ts"

/**
 * Pictures of a step: few, as larger ones add latency and, measured with EfficientNet-Lite0, no
 * throughput; products over a transformer's tokens gain up to some hundreds of them.
 */
const stepImages = ({ tower }: VisionConfig): number =>
  tower.family === "efficientnet_lite"
    ? 4
    : Math.max(1, Math.min(8, Math.floor(400 / tower.grid ** 2)))

const digestFile = "weights.sha256"

const graphOf = (
  spec: EngineSpec,
  config: VisionConfig,
  progress: (detail: string) => void,
): string => {
  const known = knownIn(spec.graphs)
  const contents = weightFilesIn(spec.path).map((name) => known.of(join(spec.path, name)))
  const digest = digestOf(["vision", visionGraphVersion, contents, spec.precision, config])
  return cachedGraph(spec.graphs, digest, (graph, folder) => {
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

const feedsOf =
  ({ preprocessing: { width, height } }: VisionConfig) =>
  (images: readonly Uint8Array[]): Feeds => {
    const pixels = new Uint8Array(images.length * height * width * 3)
    for (const [row, image] of images.entries()) {
      if (image.length !== height * width * 3)
        throw new RangeError(`a picture of ${image.length} bytes, not ${height} x ${width} x 3`)
      pixels.set(image, row * image.length)
    }
    return { pixels: new Tensor("uint8", pixels, [images.length, height, width, 3]) }
  }

/** Opens a folder with a vision tower: config.json, preprocessor_config.json, safetensors. */
export const openVisionEngine: EngineOpener<
  VisionJobRequest,
  EmbedJobEvent,
  VisionInfo,
  EmbedJob<Uint8Array>
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
    runner: new EncoderRunner(session, stepImages(config), feedsOf(config)),
    // pictures have one size, so each counts one
    start: (job, emit) => new EmbedJob(job.images, () => 1, emit),
    close: () => session.release(),
  }
}
