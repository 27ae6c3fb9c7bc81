import type { EncoderBuilding } from "../encoding/encoder-model.ts"
import { spaceVectors } from "../encoding/space-vectors.ts"
import { spaceDimensions } from "../encoding/stacked-rotations.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { efficientNet } from "./efficientnet-graph.ts"
import { naflexTransformer, visionTransformer } from "./transformer-graph.ts"
import type { VisionConfig } from "./vision-config.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const visionGraphVersion = 1

/** Bytes `[B, edge, edge, 3]` as normalized floats `[B, 3, edge, edge]`. */
export const normalized = (
  { graph }: EncoderBuilding,
  { preprocessing: { mean, std, rescale } }: Pick<VisionConfig, "preprocessing">,
): Value => {
  const planes = graph.node("Transpose", ["pixels"], { attributes: { perm: [0, 3, 1, 2] } })
  const perChannel = (values: readonly number[]) =>
    graph.node("Reshape", [graph.floats(values), graph.ints([3, 1, 1])])
  const floats = graph.node("Cast", [planes], { attributes: { to: 1 } })
  const scales = std.map((value) => rescale / value)
  const shifts = mean.map((value, channel) => -value / std[channel]!)
  return graph.node("Add", [graph.node("Mul", [floats, perChannel(scales)]), perChannel(shifts)])
}

/** Bytes of squares, `[B, most, patch * patch * 3]`, as normalized floats. */
const normalizedSquares = (
  { graph }: EncoderBuilding,
  { preprocessing: { mean, std, rescale } }: VisionConfig,
  patch: number,
): Value => {
  const repeated = (of: (channel: number) => number) =>
    graph.floats(Array.from({ length: patch * patch * 3 }, (_, i) => of(i % 3)))
  const scales = repeated((channel) => rescale / std[channel]!)
  const shifts = repeated((channel) => -mean[channel]! / std[channel]!)
  return graph.node("Add", [graph.node("Mul", [graph.toFloat("pixels"), scales]), shifts])
}

const featuresOf = (
  building: EncoderBuilding,
  config: VisionConfig,
  progress: (detail: string) => void,
): Value => {
  const { graph } = building
  const { tower, preprocessing } = config
  const { resize } = preprocessing
  if (tower.family === "siglip2" && resize.mode === "patches") {
    const { patch, most } = resize
    graph.input("pixels", "uint8", ["B", most, patch * patch * 3])
    graph.input("places", "float", ["B", most, tower.grid ** 2])
    graph.input("counts", "int64", ["B"])
    const squares = normalizedSquares(building, config, patch)
    return naflexTransformer(building, tower, most, squares)
  }
  graph.input("pixels", "uint8", ["B", preprocessing.height, preprocessing.width, 3])
  const pixels = normalized(building, config)
  return tower.family === "efficientnet_lite"
    ? efficientNet(building, tower, config, pixels, progress)
    : visionTransformer(building, tower, config, pixels)
}

/**
 * The graph of a vision tower. In: `pixels [B, height, width, 3]`, bytes of red, green and blue; of
 * pictures in squares what `pictureFeeds` makes. Out: `vectors [B,2048]` of norm 1.
 */
export const buildVisionGraph = (
  building: EncoderBuilding,
  config: VisionConfig,
  progress: (detail: string) => void,
): void => {
  const { graph } = building
  const { width, isMatryoshka } = config
  const features = featuresOf(building, config, progress)
  const vectors = spaceVectors(building, features, { width, isMatryoshka })
  graph.output("vectors", vectors, "float", ["B", spaceDimensions])
}
