import { existsSync } from "node:fs"
import { join } from "node:path"
import {
  countIn,
  countOr,
  type Metadata,
  numberIn,
  numberOr,
  numbersIn,
  present,
} from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"
import { isOn, objectAt } from "./folder-json.ts"

export interface Size {
  readonly width: number
  readonly height: number
}

/** An image as bytes of red, green and blue, row by row. */
export interface Picture extends Size {
  readonly pixels: Uint8Array
}

/** What the settings of image processors name. */
type NamedResize =
  /** Stretched. */
  | ({ readonly mode: "exact" } & Size)
  /** Until the shorter side is `edge`; what lies beyond the final size is cut off on both sides. */
  | { readonly mode: "shortest-edge"; readonly edge: number }
  /** Until the longer side is `edge`; the rest of the final size is white. */
  | { readonly mode: "longest-edge"; readonly edge: number }
  /** In about its own shape, of at most `most` squares of `patch` pixels; the size is its own. */
  | { readonly mode: "patches"; readonly patch: number; readonly most: number }

export type Resize =
  | NamedResize
  /** In its own shape, shrunk where it has more than `most` pixels; the size is its own. */
  | { readonly mode: "area"; readonly most: number }
  /** In about its own shape, with sides of whole `side`s and `least` to `most` pixels. */
  | {
      readonly mode: "squares"
      readonly side: number
      readonly least: number
      readonly most: number
    }

/**
 * How pictures are made into the pixels that a vision tower reads. Its size is that of all pictures,
 * but with `patches`, where it is that of square ones, and `area` and `squares`, where it says nothing.
 */
export interface ImagePreprocessing extends Size {
  readonly resize: Resize
  /** Antialiased interpolation, by sharp's names; `cubic` is Catmull-Rom (a = -0.5). */
  readonly kernel: "nearest" | "linear" | "cubic" | "lanczos3"
  /** A pixel of value v in channel c becomes (v * rescale - mean[c]) / std[c], in the graph. */
  readonly mean: readonly number[]
  readonly std: readonly number[]
  readonly rescale: number
}

/** Defaults of keys that the file leaves out: those of the model's image processor. */
export interface PreprocessingDefaults {
  readonly size: Readonly<Record<string, number>>
  readonly crop?: Size
  readonly mean: readonly number[]
  readonly std: readonly number[]
  readonly resample: number
  /** The squares that the model reads, where pictures keep their shape. */
  readonly patches?: { readonly side: number; readonly most: number }
}

const clipMean = [0.48145466, 0.4578275, 0.40821073]
const clipStd = [0.26862954, 0.26130258, 0.27577711]

const preprocessorFile = "preprocessor_config.json"
const processorFile = "processor_config.json"
const maxEdge = 4096
const maxPatches = 1024

// PIL's numbers of the filters
const kernels: Readonly<Record<number, ImagePreprocessing["kernel"]>> = {
  0: "nearest",
  1: "lanczos3",
  2: "linear",
  3: "cubic",
}

export const kernelOf = (json: Metadata, byDefault: number): ImagePreprocessing["kernel"] => {
  const number = numberOr(json, "resample", byDefault)
  const kernel = kernels[number]
  if (!kernel) throw new Unsupported(`'resample' is ${number}, which this backend doesn't know`)
  return kernel
}

/** Reads a size under `key`; older files have a number, the keys of which are `whenNumber`. */
const sizeIn = (json: Metadata, key: string, whenNumber = ["width", "height"]): Metadata => {
  const value = json.get(key)
  return typeof value === "number"
    ? new Map(whenNumber.map((side) => [side, value]))
    : objectAt(json, key)
}

const sidesIn = (size: Metadata): Size => ({
  width: countIn(size, "width", maxEdge),
  height: countIn(size, "height", maxEdge),
})

const resizeIn = (size: Metadata): NamedResize => {
  for (const mode of ["shortest_edge", "longest_edge"] as const)
    if (present(size, mode)) {
      if (size.size > 1) throw new Unsupported(`'size' has '${mode}' and more, which is unknown`)
      return {
        mode: mode === "shortest_edge" ? "shortest-edge" : "longest-edge",
        edge: countIn(size, mode, maxEdge),
      }
    }
  return { mode: "exact", ...sidesIn(size) }
}

export const channels = (
  json: Metadata,
  key: string,
  byDefault: readonly number[],
): readonly number[] => {
  const values = present(json, key) ? numbersIn(json, key) : byDefault
  if (values.length !== 3 || !values.every(Number.isFinite))
    throw new Damaged(`'${key}' has not a number for each of three channels`)
  return values
}

export const deviations = (json: Metadata, byDefault: readonly number[]): readonly number[] => {
  const values = channels(json, "image_std", byDefault)
  if (values.includes(0)) throw new Damaged("'image_std' has a zero")
  return values
}

const finalSize = (json: Metadata, resize: NamedResize, defaults: PreprocessingDefaults): Size => {
  if (resize.mode === "patches") return sidesIn(new Map(Object.entries(defaults.size)))
  if (resize.mode === "longest-edge") {
    if (!isOn(json, "do_pad", false))
      throw new Unsupported("'do_pad' is off, so pictures would have sizes of their own")
    const sides = present(json, "pad_size")
      ? sidesIn(objectAt(json, "pad_size"))
      : { width: resize.edge, height: resize.edge }
    if (Math.min(sides.width, sides.height) < resize.edge)
      throw new Damaged("'pad_size' is smaller than 'size'")
    return sides
  }
  if (!isOn(json, "do_center_crop", defaults.crop !== undefined)) {
    if (resize.mode === "exact") return { width: resize.width, height: resize.height }
    throw new Unsupported("'do_center_crop' is off, so pictures would have sizes of their own")
  }
  const wanted = present(json, "crop_size")
    ? sizeIn(json, "crop_size")
    : new Map(Object.entries(defaults.crop ?? {}))
  const sides = sidesIn(wanted)
  const least = resize.mode === "exact" ? resize : { width: resize.edge, height: resize.edge }
  if (sides.width > least.width || sides.height > least.height)
    throw new Unsupported("'crop_size' is larger than 'size'")
  return sides
}

/** As many squares as fit, of the size that the model reads. */
const patchesIn = (
  json: Metadata,
  { side, most }: { readonly side: number; readonly most: number },
): NamedResize => {
  const patch = countOr(json, "patch_size", maxEdge, side)
  if (patch !== side) throw new Damaged(`'patch_size' is ${patch}, the model reads ${side}`)
  return { mode: "patches", patch, most: countOr(json, "max_num_patches", maxPatches, most) }
}

const sizedIn = (json: Metadata, defaults: PreprocessingDefaults): NamedResize => {
  if (defaults.patches) return patchesIn(json, defaults.patches)
  return resizeIn(
    present(json, "size")
      ? sizeIn(json, "size", defaults.crop && ["shortest_edge"])
      : new Map(Object.entries(defaults.size)),
  )
}

const preprocessing = (json: Metadata, defaults: PreprocessingDefaults): ImagePreprocessing => {
  if (!isOn(json, "do_resize", true))
    throw new Unsupported("'do_resize' is off, so pictures would have sizes of their own")
  const resize = sizedIn(json, defaults)
  const normalizes = isOn(json, "do_normalize", true)
  return {
    ...finalSize(json, resize, defaults),
    resize,
    kernel: kernelOf(json, defaults.resample),
    mean: normalizes ? channels(json, "image_mean", defaults.mean) : [0, 0, 0],
    std: normalizes ? deviations(json, defaults.std) : [1, 1, 1],
    rescale: isOn(json, "do_rescale", true)
      ? present(json, "rescale_factor")
        ? numberIn(json, "rescale_factor")
        : 1 / 255
      : 1,
  }
}

/**
 * The settings of a folder's image processor, and the file that has them: new folders have one for
 * the processors of all inputs.
 */
export const settingsIn = (folder: string): { readonly path: string; readonly json: Metadata } => {
  const of = (name: string, json: () => Metadata) => ({ path: join(folder, name), json: json() })
  if (existsSync(join(folder, preprocessorFile)))
    return of(preprocessorFile, () => readJson(folder, preprocessorFile))
  if (existsSync(join(folder, processorFile)))
    return of(processorFile, () => objectAt(readJson(folder, processorFile), "image_processor"))
  return of(preprocessorFile, () => new Map())
}

/**
 * Reads preprocessor_config.json, or processor_config.json, as image processors of transformers
 * write it, of a tower that takes square pictures with sides of `edge` pixels. Throws
 * `ModelFileError`.
 */
export const imagePreprocessing = (
  folder: string,
  edge: number,
  defaults: PreprocessingDefaults,
): ImagePreprocessing => {
  const { path, json } = settingsIn(folder)
  return explaining(path, () => {
    const found = preprocessing(json, defaults)
    if (found.width !== edge || found.height !== edge)
      throw new Damaged(
        `it makes pictures of ${found.width} x ${found.height} pixels, the model reads ${edge} x ${edge}`,
      )
    return found
  })
}

/** Scores of attention grow with the square of it: 16 heads of 3,072 squares take 604 MB. */
const maxTokens = 768

/**
 * Reads the settings of an image processor of Qwen-VL, whose tower reads squares of `patch` pixels
 * and makes a token of `merge` x `merge` of them. Throws `ModelFileError`.
 */
export const patchPreprocessing = (
  folder: string,
  { patch, merge }: { readonly patch: number; readonly merge: number },
): ImagePreprocessing => {
  const { path, json } = settingsIn(folder)
  return explaining(path, () => {
    const size: Metadata = present(json, "size") ? objectAt(json, "size") : new Map()
    const own = (key: string, ofSize: string, byDefault: number) =>
      countOr(size, ofSize, 2 ** 31, countOr(json, key, 2 ** 31, byDefault))
    const side = patch * merge
    for (const [key, wanted] of Object.entries({ patch_size: patch, merge_size: merge }))
      if (countOr(json, key, maxEdge, wanted) !== wanted)
        throw new Damaged(`'${key}' is ${json.get(key)}, the model reads ${wanted}`)
    const most = Math.min(
      own("max_pixels", "longest_edge", 28 * 28 * 1280),
      maxTokens * side * side,
    )
    const least = own("min_pixels", "shortest_edge", 56 * 56)
    if (least > most) throw new Damaged(`'min_pixels' is ${least}, more than ${most}`)
    const normalizes = isOn(json, "do_normalize", true)
    return {
      width: 0,
      height: 0,
      resize: { mode: "squares", side, least, most },
      kernel: kernelOf(json, 3),
      mean: normalizes ? channels(json, "image_mean", clipMean) : [0, 0, 0],
      std: normalizes ? deviations(json, clipStd) : [1, 1, 1],
      rescale: present(json, "rescale_factor") ? numberIn(json, "rescale_factor") : 1 / 255,
    }
  })
}
