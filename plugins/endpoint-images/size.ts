import { maxSide } from "./schema.ts"

export interface Size {
  readonly width: number
  readonly height: number
}

/** Pictures have sides of a multiple of this, the VAE's and the denoiser's patches together. */
const multiple = 16
const minSide = 64
const defaultSize: Size = { width: 768, height: 768 }

const roundedDown = (side: number) => side - (side % multiple)
const rounded = ({ width, height }: Size): Size => ({
  width: roundedDown(width),
  height: roundedDown(height),
})

/** Returns the size that a request names, rounded down, or what is wrong with it. */
const named = (text: string, most: number): Size | string => {
  const [, w, h] = /^(\d{1,6})x(\d{1,6})$/.exec(text) ?? []
  if (w === undefined || h === undefined) return "must be WIDTHxHEIGHT, such as 512x512, or auto"
  const size = { width: Number(w), height: Number(h) }
  // before rounding: 970x960 is over the limit, though it would become 960x960
  if (Math.max(size.width, size.height) > most) return `must be at most ${most}x${most}`
  if (Math.min(size.width, size.height) < minSide) return `must be at least ${minSide}x${minSide}`
  return rounded(size)
}

/** The first source scaled to fit the limit, never enlarged, and no side below the least. */
export const fitting = ({ width, height }: Size, most: number = maxSide.edit): Size => {
  const scale = Math.min(1, most / Math.max(width, height))
  const side = (length: number) => Math.max(minSide, Math.floor(length * scale))
  return rounded({ width: side(width), height: side(height) })
}

const isNamed = (size: string | null | undefined): size is string => size != null && size !== "auto"

export const generationSize = (size: string | null | undefined): Size | string =>
  isNamed(size) ? named(size, maxSide.generation) : defaultSize

export const editSize = (size: string | null | undefined, first: Size): Size | string =>
  isNamed(size) ? named(size, maxSide.edit) : fitting(first)

export const sizeText = ({ width, height }: Size): string => `${width}x${height}`
