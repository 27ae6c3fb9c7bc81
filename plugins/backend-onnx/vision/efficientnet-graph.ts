import type { EncoderBuilding } from "../encoding/encoder-model.ts"
import { table, vector } from "../encoding/encoder-parts.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { Damaged } from "../weights/model-file-error.ts"
import type { EfficientNetConfig, MbConv, VisionConfig } from "./vision-config.ts"

/** A value in the graph with square channels of `edge` x `edge`. */
interface Channels {
  readonly value: Value
  readonly edge: number
}

interface Convolution {
  readonly inputs: number
  readonly outputs: number
  readonly kernel: number
  readonly stride: number
  /** Each channel has a kernel of its own. */
  readonly isDepthwise?: boolean
}

/**
 * Zeros on each side, as TensorFlow's padding SAME has them: the output has ceil(edge / stride)
 * pixels, and an odd zero lies behind.
 */
const samePadding = (edge: number, { kernel, stride }: Convolution): readonly number[] => {
  const all = Math.max(0, (Math.ceil(edge / stride) - 1) * stride + kernel - edge)
  const before = all >> 1
  return [before, before, all - before, all - before]
}

/** Convolution with bias, from the tensors `name.weight` and `name.bias`. */
const convolved = (
  building: EncoderBuilding,
  name: string,
  { value, edge }: Channels,
  of: Convolution,
): Channels => {
  const { graph } = building
  const depth = of.isDepthwise ? 1 : of.inputs
  const inputs = [
    value,
    table(building, `${name}.weight`, of.outputs, depth, of.kernel, of.kernel),
    vector(building, `${name}.bias`, of.outputs),
  ]
  const attributes = {
    kernel_shape: [of.kernel, of.kernel],
    strides: [of.stride, of.stride],
    pads: samePadding(edge, of),
    group: of.isDepthwise ? of.inputs : 1,
  }
  return {
    value: graph.node("Conv", inputs, { attributes }),
    edge: Math.ceil(edge / of.stride),
  }
}

const relu6 = ({ graph }: EncoderBuilding, { value, edge }: Channels): Channels => ({
  value: graph.node("Clip", [value, graph.floats(0), graph.floats(6)]),
  edge,
})

const inverted = (
  building: EncoderBuilding,
  name: string,
  x: Channels,
  block: MbConv,
): Channels => {
  const { inputs, outputs, kernel, stride, expansion } = block
  const channels = inputs * expansion
  const wide =
    expansion === 1
      ? x
      : relu6(
          building,
          convolved(building, `${name}.expand`, x, {
            inputs,
            outputs: channels,
            kernel: 1,
            stride: 1,
          }),
        )
  const depthwise = { inputs: channels, outputs: channels, kernel, stride, isDepthwise: true }
  const filtered = relu6(building, convolved(building, `${name}.depthwise`, wide, depthwise))
  const projection = { inputs: channels, outputs, kernel: 1, stride: 1 }
  const narrow = convolved(building, `${name}.project`, filtered, projection)
  if (stride !== 1 || inputs !== outputs) return narrow
  return { ...narrow, value: building.graph.node("Add", [narrow.value, x.value]) }
}

type Tower = Pick<EfficientNetConfig, "stem" | "blocks" | "head">

/** Its features, `[B,head,grid,grid]`, of pixels `[B,3,edge,edge]`. */
export const efficientNetFeatures = (
  building: EncoderBuilding,
  tower: Tower,
  edge: number,
  pixels: Value,
  progress: (detail: string) => void = () => {},
): Value => {
  const stem = { inputs: 3, outputs: tower.stem, kernel: 3, stride: 2 }
  let x = relu6(building, convolved(building, "stem", { value: pixels, edge }, stem))
  for (const [index, block] of tower.blocks.entries()) {
    progress(`building the graph: block ${index + 1} of ${tower.blocks.length}`)
    x = inverted(building, `blocks.${index}`, x, block)
  }
  const last = tower.blocks.at(-1)!.outputs
  const head = { inputs: last, outputs: tower.head, kernel: 1, stride: 1 }
  return relu6(building, convolved(building, "head", x, head)).value
}

const tensorsOf = ({ blocks }: EfficientNetConfig): ReadonlySet<string> => {
  const parts = blocks.flatMap(({ expansion }, index) =>
    [...(expansion === 1 ? [] : ["expand"]), "depthwise", "project"].map(
      (part) => `blocks.${index}.${part}`,
    ),
  )
  return new Set(
    ["stem", ...parts, "head", "projection"].flatMap((name) => [
      `${name}.weight`,
      `${name}.weight_scale`,
      `${name}.bias`,
    ]),
  )
}

/**
 * An EfficientNet-Lite (Tan and Le, arXiv 1905.11946, without squeeze-and-excitation and with
 * ReLU6), whose batch norms are part of the convolutions, with a linear layer behind its mean:
 * pixels `[B,3,edge,edge]` to `[B,width]`.
 */
export const efficientNet = (
  building: EncoderBuilding,
  tower: EfficientNetConfig,
  { width, preprocessing }: VisionConfig,
  pixels: Value,
  progress: (detail: string) => void,
): Value => {
  const { graph, file } = building
  const known = tensorsOf(tower)
  for (const name of file.names())
    if (!known.has(name)) throw new Damaged(`it has the tensor '${name}', which is none of its own`)
  const features = efficientNetFeatures(building, tower, preprocessing.width, pixels, progress)
  const mean = graph.node("GlobalAveragePool", [features])
  const projection = { inputs: tower.head, outputs: width, kernel: 1, stride: 1 }
  const projected = convolved(building, "projection", { value: mean, edge: 1 }, projection)
  return graph.node("Flatten", [projected.value])
}
