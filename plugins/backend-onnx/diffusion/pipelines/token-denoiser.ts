import type { Adapter } from "../../../../core/ports/model.ts"
import { floats } from "../../onnx/onnx-session.ts"
import type { AdaptedPart } from "../lora/adapted-parts.ts"
import type { Condition, Tensor } from "../model.ts"
import { axialTables, gridPositions, type Position } from "../transformers/rotary-positions.ts"
import { joinedTokens, mapOf, tokensOf } from "./packing.ts"

/** Where tokens are, for their rotation. */
export interface Places {
  readonly axes: readonly number[]
  readonly theta: number
  text(token: number): Position
  image(row: number, column: number): Position
  /** A place in the reference `index`, from 0. */
  reference(index: number, row: number, column: number): Position
}

const rowsOf = ({ data, dims }: Tensor): readonly Position[] =>
  Array.from({ length: dims[0]! }, (_, row) => [
    ...data.subarray(row * dims[1]!, (row + 1) * dims[1]!),
  ])

/**
 * What the denoiser sees of references, maps `[1,C,H,W]` of patches: their tokens, and where these
 * are.
 */
export const referenceCondition = (maps: readonly Tensor[], places: Places): Condition => {
  if (maps.length === 0) return {}
  const positions = maps.flatMap(({ dims }, index) =>
    gridPositions(dims[2]!, dims[3]!, (row, column) => places.reference(index, row, column)),
  )
  return {
    references: joinedTokens(maps.map(tokensOf)),
    places: {
      data: Float32Array.from(positions.flat()),
      dims: [positions.length, places.axes.length],
    },
  }
}

interface Rotation {
  readonly size: string
  readonly among: Tensor | undefined
  readonly cos: Tensor
  readonly sin: Tensor
}

/**
 * A denoiser whose picture is a sequence of tokens with rotary positions, as in FLUX: text before
 * the picture, references behind it. The function that is returned takes and returns a map of
 * patches `[1,C,H,W]`.
 */
export const tokenDenoiser = (part: AdaptedPart, places: Places) => {
  // the same in all steps of a picture; by the context, as conditions are joined anew in each
  const rotations = new WeakMap<Tensor, Rotation>()
  const rotationOf = (condition: Condition, { dims }: Tensor): Rotation => {
    const size = dims.join("x")
    const context = condition.context!
    const known = rotations.get(context)
    if (known?.size === size && known.among === condition.places) return known
    const positions = [
      ...Array.from({ length: context.dims[1]! }, (_, token) => places.text(token)),
      ...gridPositions(dims[2]!, dims[3]!, places.image),
      ...(condition.places ? rowsOf(condition.places) : []),
    ]
    const { cos, sin } = axialTables(positions, places.axes, places.theta)
    const shape = [positions.length, cos.length / positions.length]
    const among = condition.places
    const made = { size, among, cos: { data: cos, dims: shape }, sin: { data: sin, dims: shape } }
    rotations.set(context, made)
    return made
  }
  return async (
    map: Tensor,
    timestep: number,
    condition: Condition,
    guidance?: number,
    adapter?: Adapter,
  ): Promise<Tensor> => {
    const { context, pooled, references } = condition
    const { cos, sin } = rotationOf(condition, map)
    const own = tokensOf(map)
    const feed = ({ data, dims }: Tensor) => floats(data, dims)
    const feeds = {
      latents: feed(references ? joinedTokens([own, references]) : own),
      context: feed(context!),
      ...(pooled && { pooled: feed(pooled) }),
      timestep: floats(Float32Array.of(timestep), [1]),
      ...(guidance !== undefined && { guidance: floats(Float32Array.of(guidance), [1]) }),
      cos: feed(cos),
      sin: feed(sin),
    }
    const { output } = await part.run(feeds, adapter)
    return mapOf(output!.data as Float32Array, map.dims)
  }
}
