import type { ImagePreprocessing, Resize, Size } from "./image-preprocessing.ts"

/** Where the pixels of a picture go. */
export interface ImagePlacement {
  /** The part of the picture that is resized. */
  readonly source: Size & { readonly left: number; readonly top: number }
  /** The size that it gets. */
  readonly resized: Size
  /** The size that the tower reads. */
  readonly final: Size
  /**
   * Pixel (x, y) of the final size is pixel (x + left, y + top) of the resized part, and white
   * where there is none.
   */
  readonly left: number
  readonly top: number
}

// beyond this ratio of the sides, the ends are cut off before a picture is enlarged, which could
// take any amount of memory else; the second one is where transformers refuses a picture
const maxRatios: Readonly<Partial<Record<Resize["mode"], number>>> = {
  "shortest-edge": 16,
  squares: 200,
}

const clamped = (value: number): number => Math.max(1, value)

/** The middle of a picture whose sides differ more than `maxRatio` times. */
const sourceOf = ({ width, height }: Size, maxRatio: number): ImagePlacement["source"] => {
  const most = maxRatio * Math.min(width, height)
  const [w, h] = [Math.min(width, most), Math.min(height, most)]
  return { width: w, height: h, left: (width - w) >> 1, top: (height - h) >> 1 }
}

/** The largest sizes of whole squares near the picture's shape, searched as transformers does. */
const patchesOf = (patch: number, most: number, { width, height }: Size): Size => {
  const scaled = (scale: number, side: number) =>
    Math.max(1, Math.ceil((side * scale) / patch)) * patch
  let [from, to] = [1e-6, 100]
  while (to - from >= 1e-5) {
    const scale = (from + to) / 2
    if ((scaled(scale, width) / patch) * (scaled(scale, height) / patch) <= most) from = scale
    else to = scale
  }
  return { width: scaled(from, width), height: scaled(from, height) }
}

/** Rounds as diffusers does for the references of FLUX.2. */
const withinArea = (most: number, { width, height }: Size): Size => {
  const scale = Math.min(1, Math.sqrt(most / (width * height)))
  return { width: clamped(Math.trunc(width * scale)), height: clamped(Math.trunc(height * scale)) }
}

/** Halves are rounded to even numbers, as in Python. */
const rounded = (value: number): number => {
  const below = Math.floor(value)
  if (value - below !== 0.5) return Math.round(value)
  return below + (below % 2)
}

/** Rounds as transformers does for Qwen-VL. */
const squaresOf = (
  { side, least, most }: Extract<Resize, { readonly mode: "squares" }>,
  { width, height }: Size,
): Size => {
  const nearest = (length: number) => rounded(length / side) * side
  const area = nearest(width) * nearest(height)
  const down = Math.sqrt((width * height) / most)
  const up = Math.sqrt(least / (width * height))
  const to = (length: number) => {
    if (area > most) return Math.max(side, Math.floor(length / down / side) * side)
    return area < least ? Math.ceil((length * up) / side) * side : nearest(length)
  }
  return { width: to(width), height: to(height) }
}

const resizedOf = (resize: Resize, size: Size): Size => {
  const { width, height } = size
  if (resize.mode === "patches") return patchesOf(resize.patch, resize.most, size)
  if (resize.mode === "area") return withinArea(resize.most, size)
  if (resize.mode === "squares") return squaresOf(resize, size)
  if (resize.mode === "exact") return { width: resize.width, height: resize.height }
  const { mode, edge } = resize
  const isFixed = mode === "shortest-edge" ? width <= height : width >= height
  // rounded down, as transformers does
  return isFixed
    ? { width: edge, height: clamped(Math.trunc((edge * height) / width)) }
    : { width: clamped(Math.trunc((edge * width) / height)), height: edge }
}

/** Where the pixels of a picture of this size go. */
export const placementOf = (preprocessing: ImagePreprocessing, picture: Size): ImagePlacement => {
  const { resize } = preprocessing
  const maxRatio = maxRatios[resize.mode]
  const source =
    maxRatio === undefined ? { left: 0, top: 0, ...picture } : sourceOf(picture, maxRatio)
  const resized = resizedOf(resize, source)
  const hasOwnSize = ["patches", "area", "squares"].includes(resize.mode)
  const { width, height } = hasOwnSize ? resized : preprocessing
  return {
    source,
    resized,
    final: { width, height },
    left: Math.floor((resized.width - width) / 2),
    top: Math.floor((resized.height - height) / 2),
  }
}
