import { table, vector } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"
import { linear, type PartBuilding, silu } from "./layers.ts"

export interface Convolution {
  readonly inputs: number
  readonly outputs: number
  readonly kernel?: number
  readonly stride?: number
  /** Zeros above, left, below and right; by default as many as keep the size. */
  readonly pads?: readonly [number, number, number, number]
}

/** No convolution takes blocks: where a model's matrices have 8 or 4 bits, its kernels have 16. */
const keptKernels = (building: PartBuilding): PartBuilding =>
  building.precision === "int8" || building.precision === "int4"
    ? { ...building, precision: "fp16" }
    : building

/** Convolution of `x [1,inputs,H,W]` by `name.weight`, plus `name.bias`: `[1,outputs,H,W]`. */
export const conv2d = (
  building: PartBuilding,
  name: string,
  x: Value,
  { inputs, outputs, kernel = 3, stride = 1, pads }: Convolution,
): Value => {
  const around = (kernel - 1) >> 1
  const weight = table(keptKernels(building), `${name}.weight`, outputs, inputs, kernel, kernel)
  return building.graph.node("Conv", [x, weight, vector(building, `${name}.bias`, outputs)], {
    attributes: {
      kernel_shape: [kernel, kernel],
      strides: [stride, stride],
      pads: pads ?? [around, around, around, around],
    },
  })
}

/** The sizes of `x`'s dimensions, or those from `start` on. */
export const shapeOf = ({ graph }: PartBuilding, x: Value, start = 0): Value =>
  graph.node("Shape", [x], { attributes: { start } })

export interface GroupNorm {
  readonly channels: number
  readonly groups: number
  readonly epsilon: number
}

/** A vector `[channels]` of a map `[1,channels,H,W]`. */
export const perChannel = ({ graph }: PartBuilding, values: Value, channels: number): Value =>
  graph.node("Reshape", [values, graph.ints([1, channels, 1, 1])])

/**
 * Group normalization (Wu and He, arXiv 1803.08494) of `x [1,channels,H,W]` by `name.weight` and
 * `name.bias`, as the normalization of each group as one long channel.
 */
export const groupNorm = (
  building: PartBuilding,
  name: string,
  x: Value,
  { channels, groups, epsilon }: GroupNorm,
): Value => {
  const { graph } = building
  const long = graph.node("Reshape", [x, graph.ints([1, groups, -1])])
  const ones = graph.floats(new Array<number>(groups).fill(1))
  const zeros = graph.floats(new Array<number>(groups).fill(0))
  const normed = graph.node("InstanceNormalization", [long, ones, zeros], {
    attributes: { epsilon: { float: epsilon } },
  })
  const map = graph.node("Reshape", [normed, shapeOf(building, x)])
  const scaled = graph.node("Mul", [
    map,
    perChannel(building, vector(building, `${name}.weight`, channels), channels),
  ])
  return graph.node("Add", [
    scaled,
    perChannel(building, vector(building, `${name}.bias`, channels), channels),
  ])
}

/** `x [1,C,H,W]` with each pixel repeated, to the edges `size [2]`. */
export const enlarged = (building: PartBuilding, x: Value, size: Value): Value => {
  const { graph } = building
  const kept = graph.node("Shape", [x], { attributes: { start: 0, end: 2 } })
  return graph.node("Resize", [x, "", "", graph.concat([kept, size], 0)], {
    attributes: {
      mode: "nearest",
      coordinate_transformation_mode: "asymmetric",
      nearest_mode: "floor",
    },
  })
}

/** `x [1,C,H,W]` as tokens `[1,H*W,C]`. */
export const tokensOf = ({ graph }: PartBuilding, x: Value, channels: number): Value => {
  const flat = graph.node("Reshape", [x, graph.ints([1, channels, -1])])
  return graph.node("Transpose", [flat], { attributes: { perm: [0, 2, 1] } })
}

/** Tokens `[1,H*W,C]` as a map of the shape of `like`. */
export const mapOf = (building: PartBuilding, tokens: Value, like: Value): Value => {
  const { graph } = building
  const flat = graph.node("Transpose", [tokens], { attributes: { perm: [0, 2, 1] } })
  return graph.node("Reshape", [flat, shapeOf(building, like)])
}

export interface Resnet {
  readonly inputs: number
  readonly outputs: number
  readonly groups: number
  readonly epsilon: number
  /** The activated embedding of the timestep, `[1,1,width]`. */
  readonly time?: { readonly value: Value; readonly width: number }
}

/**
 * A residual block of two convolutions (ResnetBlock2D of diffusers): `x [1,inputs,H,W]` to
 * `[1,outputs,H,W]`.
 */
export const resnet = (
  building: PartBuilding,
  name: string,
  x: Value,
  { inputs, outputs, groups, epsilon, time }: Resnet,
): Value => {
  const { graph } = building
  const norms = { groups, epsilon }
  const before = groupNorm(building, `${name}.norm1`, x, { ...norms, channels: inputs })
  const first = conv2d(building, `${name}.conv1`, silu(building, before), { inputs, outputs })
  const timed = time ? graph.node("Add", [first, timeShift(building, name, time, outputs)]) : first
  const between = groupNorm(building, `${name}.norm2`, timed, { ...norms, channels: outputs })
  const second = conv2d(building, `${name}.conv2`, silu(building, between), {
    inputs: outputs,
    outputs,
  })
  const shortcut =
    inputs === outputs
      ? x
      : conv2d(building, `${name}.conv_shortcut`, x, { inputs, outputs, kernel: 1 })
  return graph.node("Add", [shortcut, second])
}

const timeShift = (
  building: PartBuilding,
  name: string,
  { value, width }: NonNullable<Resnet["time"]>,
  outputs: number,
): Value => {
  const sizes = { rows: outputs, columns: width }
  return perChannel(building, linear(building, `${name}.time_emb_proj`, value, sizes), outputs)
}
