import { countIn, type Metadata, numberIn, present } from "../weights/gguf-metadata.ts"
import { explaining } from "../weights/model-file-error.ts"
import { isOn, objectAt } from "./folder-json.ts"
import {
  channels,
  deviations,
  type ImagePreprocessing,
  kernelOf,
  type Size,
  settingsIn,
} from "./image-preprocessing.ts"

/** How a picture is divided into the squares that a tower reads one by one (Idefics3). */
export interface ImageTiling {
  /** The longer side that a picture gets before it is divided. */
  readonly longestEdge: number
  /** The side of a tile. */
  readonly edge: number
  /** Without, a picture is one tile. */
  readonly splits: boolean
  readonly kernel: ImagePreprocessing["kernel"]
}

/** The sizes that a picture gets, one after the other, and how many tiles it is then. */
export interface TilePlan {
  readonly first: Size
  readonly whole: Size
  /** 0 where it is one tile: else a small picture of the whole follows the tiles. */
  readonly rows: number
  readonly columns: number
}

const even = (side: number): number => side + (side % 2)
const upTo = (side: number, edge: number): number => Math.ceil(side / edge) * edge

/** The longer side is given, the other follows from the shape, as transformers rounds it. */
const withLonger = (
  { width, height }: Size,
  longer: number,
  rounded: (side: number) => number,
): Size => {
  const ratio = width / height
  const other = (side: number) => Math.max(1, rounded(Math.trunc(side)))
  return width >= height
    ? { width: longer, height: other(longer / ratio) }
    : { width: other(longer * ratio), height: longer }
}

/** The tiles of a picture of this size. */
export const tilePlan = ({ longestEdge, edge, splits }: ImageTiling, picture: Size): TilePlan => {
  const first = withLonger(picture, longestEdge, even)
  if (!splits) return { first, whole: { width: edge, height: edge }, rows: 0, columns: 0 }
  const longer = upTo(Math.max(first.width, first.height), edge)
  const whole = withLonger(first, longer, (side) => upTo(side, edge))
  const [rows, columns] = [Math.max(1, whole.height / edge), Math.max(1, whole.width / edge)]
  return rows * columns === 1
    ? { first, whole, rows: 0, columns: 0 }
    : { first, whole, rows, columns }
}

const longestIn = (json: Metadata, key: string, most: number, byDefault: number): number =>
  present(json, key) ? countIn(objectAt(json, key), "longest_edge", most) : byDefault

const maxEdge = 4096
const halves = [0.5, 0.5, 0.5]

/**
 * Reads the settings of an image processor of Idefics3, of a tower that takes squares of `edge`
 * pixels. Throws `ModelFileError`.
 */
export const imageTiling = (
  folder: string,
  edge: number,
): { readonly tiling: ImageTiling; readonly preprocessing: ImagePreprocessing } => {
  const { path, json } = settingsIn(folder)
  return explaining(path, () => {
    const kernel = kernelOf(json, 1)
    const side = longestIn(json, "max_image_size", maxEdge, edge)
    const normalizes = isOn(json, "do_normalize", true)
    const rescales = isOn(json, "do_rescale", true)
    const scale = present(json, "rescale_factor") ? numberIn(json, "rescale_factor") : 1 / 255
    return {
      tiling: {
        longestEdge: longestIn(json, "size", maxEdge, 4 * edge),
        edge: side,
        splits: isOn(json, "do_image_splitting", true),
        kernel,
      },
      preprocessing: {
        width: side,
        height: side,
        resize: { mode: "exact", width: side, height: side },
        kernel,
        mean: normalizes ? channels(json, "image_mean", halves) : [0, 0, 0],
        std: normalizes ? deviations(json, halves) : [1, 1, 1],
        rescale: rescales ? scale : 1,
      },
    }
  })
}
