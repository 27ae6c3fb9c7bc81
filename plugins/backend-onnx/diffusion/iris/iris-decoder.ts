import { table } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"
import { countIn, type Metadata, numbersIn } from "../../weights/gguf-metadata.ts"
import { Damaged } from "../../weights/model-file-error.ts"
import { conv2d } from "../graph/convolution.ts"
import type { PartBuilding } from "../graph/layers.ts"

/** Sizes of an IrisDecoder. */
export interface IrisDecoderConfig {
  readonly width: number
  readonly blocks: number
  /** Channels after each doubling but the last. */
  readonly upsamples: readonly number[]
  /** How many times as large the result is. */
  readonly scale: number
}

export const irisDecoderConfig = (json: Metadata): IrisDecoderConfig => {
  const upsamples = numbersIn(json, "upsample_sizes")
  const scale = countIn(json, "scale", 64)
  const isCount = (size: number) => Number.isInteger(size) && size > 0 && size <= 1024
  if (!upsamples.every(isCount) || scale !== 2 ** (upsamples.length + 1))
    throw new Damaged(`'upsample_sizes' are ${upsamples.join(", ")} for a scale of ${scale}`)
  return {
    width: countIn(json, "hidden_size", 1024),
    blocks: countIn(json, "num_blocks", 256),
    upsamples,
    scale,
  }
}

const relu = ({ graph }: PartBuilding, x: Value): Value => graph.node("Relu", [x])

/** Sub-pixel convolution's rearrangement (Shi et al., arXiv 1609.05158). */
const shuffled = ({ graph }: PartBuilding, x: Value, scale: number): Value =>
  graph.node("DepthToSpace", [x], { attributes: { blocksize: scale, mode: "CRD" } })

/** The enlargement that the network corrects: a convolution of each channel alone. */
const enlarged = (building: PartBuilding, canvas: Value, scale: number): Value => {
  const { graph } = building
  const pads = graph.ints([0, 0, 2, 2, 0, 0, 2, 2])
  const padded = graph.node("Pad", [canvas, pads], { attributes: { mode: "edge" } })
  const weight = table(building, "skip.weight", 3 * scale ** 2, 1, 5, 5)
  const all = graph.node("Conv", [padded, weight], {
    attributes: { kernel_shape: [5, 5], group: 3 },
  })
  return shuffled(building, all, scale)
}

/**
 * The decoder of the default image model (plugins/model-iris/train/decoder.py).
 * In: `canvas [1,3,H,W]` from -1 to 1. Out: `pixels [1,3,scale*H,scale*W]`, within these bounds.
 */
export const buildIrisDecoder = (building: PartBuilding, config: IrisDecoderConfig): void => {
  const { graph } = building
  const { width, scale } = config
  const canvas = graph.input("canvas", "float", [1, 3, "H", "W"])
  const square = { inputs: width, outputs: width }
  let x = conv2d(building, "conv_in", canvas, { inputs: 3, outputs: width })
  for (let index = 0; index < config.blocks; index++) {
    const first = relu(building, conv2d(building, `blocks.${index}.conv1`, x, square))
    x = graph.node("Add", [x, conv2d(building, `blocks.${index}.conv2`, first, square)])
  }
  let inputs = width
  for (const [index, outputs] of config.upsamples.entries()) {
    const name = `upsamples.${index}`
    const expanded = conv2d(building, `${name}.expand`, x, { inputs, outputs: 4 * outputs })
    const large = relu(building, shuffled(building, expanded, 2))
    x = relu(building, conv2d(building, `${name}.conv`, large, { inputs: outputs, outputs }))
    inputs = outputs
  }
  const last = shuffled(building, conv2d(building, "conv_out", x, { inputs, outputs: 12 }), 2)
  const sum = graph.node("Add", [enlarged(building, canvas, scale), last])
  const bounded = graph.node("Clip", [sum, graph.floats(-1), graph.floats(1)])
  graph.output("pixels", bounded, "float", [1, 3, "Y", "X"])
}
