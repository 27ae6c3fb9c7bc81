import type { EncoderBuilding } from "../encoding/encoder-model.ts"
import { spaceVectors } from "../encoding/space-vectors.ts"
import { spaceDimensions } from "../encoding/stacked-rotations.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { efficientNet } from "./efficientnet-graph.ts"
import { visionTransformer } from "./transformer-graph.ts"
import type { VisionConfig } from "./vision-config.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const visionGraphVersion = 1

/** Bytes `[B, edge, edge, 3]` as normalized floats `[B, 3, edge, edge]`. */
const normalized = (
  { graph }: EncoderBuilding,
  { preprocessing: { mean, std, rescale } }: VisionConfig,
): Value => {
  const planes = graph.node("Transpose", ["pixels"], { attributes: { perm: [0, 3, 1, 2] } })
  const perChannel = (values: readonly number[]) =>
    graph.node("Reshape", [graph.floats(values), graph.ints([3, 1, 1])])
  const floats = graph.node("Cast", [planes], { attributes: { to: 1 } })
  const scales = std.map((value) => rescale / value)
  const shifts = mean.map((value, channel) => -value / std[channel]!)
  return graph.node("Add", [graph.node("Mul", [floats, perChannel(scales)]), perChannel(shifts)])
}

/**
 * The graph of a vision tower. In: `pixels [B, height, width, 3]`, bytes of red, green and blue.
 * Out: `vectors [B,2048]` of norm 1.
 */
export const buildVisionGraph = (
  building: EncoderBuilding,
  config: VisionConfig,
  progress: (detail: string) => void,
): void => {
  const { graph } = building
  const { tower, preprocessing, width, isMatryoshka } = config
  graph.input("pixels", "uint8", ["B", preprocessing.height, preprocessing.width, 3])
  const pixels = normalized(building, config)
  const features =
    tower.family === "efficientnet_lite"
      ? efficientNet(building, tower, config, pixels, progress)
      : visionTransformer(building, tower, config, pixels)
  const vectors = spaceVectors(building, features, { width, isMatryoshka })
  graph.output("vectors", vectors, "float", ["B", spaceDimensions])
}
