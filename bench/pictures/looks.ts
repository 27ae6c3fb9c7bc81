import { labOf } from "./colour-names.ts"
import type { Picture } from "./pieces.ts"

/** Figures of how a picture looks; lightness and chroma as in CIELAB. */
export interface Look {
  readonly lightness: number
  /** Lightness of the outermost tenth of the picture. */
  readonly edgeLightness: number
  readonly chroma: number
  /** The part of the picture that is nearly black. */
  readonly ink: number
}

const inkLightness = 25

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

export const lookOf = ({ data, width, height }: Picture): Look => {
  const labs = Array.from({ length: width * height }, (_, at) =>
    labOf(data[3 * at]!, data[3 * at + 1]!, data[3 * at + 2]!),
  )
  const lightness = labs.map(([light]) => light)
  const isEdge = (at: number) => {
    const [x, y] = [(at % width) / width, Math.floor(at / width) / height]
    return Math.min(x, y, 1 - x, 1 - y) < 0.1
  }
  return {
    lightness: meanOf(lightness),
    edgeLightness: meanOf(lightness.filter((_, at) => isEdge(at))),
    chroma: meanOf(labs.map(([, a, b]) => Math.hypot(a, b))),
    ink: lightness.filter((light) => light < inkLightness).length / labs.length,
  }
}

export const meanLook = (looks: readonly Look[]): Look => ({
  lightness: meanOf(looks.map(({ lightness }) => lightness)),
  edgeLightness: meanOf(looks.map(({ edgeLightness }) => edgeLightness)),
  chroma: meanOf(looks.map(({ chroma }) => chroma)),
  ink: meanOf(looks.map(({ ink }) => ink)),
})
