import sharp from "sharp"
import type { Pixels, Tensor } from "../model.ts"

/** A picture as `[1,3,height,width]`, from -1 to 1. */
export const planesOf = ({ data: bytes, width, height }: Pixels): Tensor => {
  const count = width * height
  const data = new Float32Array(3 * count)
  for (let place = 0; place < count; place++)
    for (let channel = 0; channel < 3; channel++)
      data[channel * count + place] = bytes[3 * place + channel]! / 127.5 - 1
  return { data, dims: [1, 3, height, width] }
}

/** The inverse of `planesOf`; what is outside of the range is cut off. */
export const pixelsOf = ({ data: planes, dims }: Tensor): Pixels => {
  const [, , height, width] = dims as readonly [number, number, number, number]
  const count = width * height
  const data = new Uint8Array(3 * count)
  for (let place = 0; place < count; place++)
    for (let channel = 0; channel < 3; channel++) {
      const value = (planes[channel * count + place]! + 1) * 127.5
      data[3 * place + channel] = Math.round(Math.min(255, Math.max(0, value)))
    }
  return { data, width, height }
}

const raw = ({ data, width, height }: Pixels) =>
  sharp(data, { raw: { width, height, channels: 3 } })

/** A picture in another size, without regard to its proportions. */
export const resized = async (picture: Pixels, width: number, height: number): Promise<Pixels> => {
  if (picture.width === width && picture.height === height) return picture
  const data = await raw(picture)
    .resize({ width, height, fit: "fill", kernel: "lanczos3" })
    .raw()
    .toBuffer()
  return { data, width, height }
}

/** The middle of a picture. */
export const cropped = async (picture: Pixels, width: number, height: number): Promise<Pixels> => {
  if (picture.width === width && picture.height === height) return picture
  const left = Math.trunc((picture.width - width) / 2)
  const top = Math.trunc((picture.height - height) / 2)
  const data = await raw(picture).extract({ left, top, width, height }).raw().toBuffer()
  return { data, width, height }
}

/** A size of about this area with the proportions of a picture, in multiples. */
export const sizeOfArea = (
  { width, height }: Pixels,
  area: number,
  multiple: number,
): { readonly width: number; readonly height: number } => {
  const scale = Math.sqrt(area / (width * height))
  const fitted = (edge: number) =>
    Math.max(multiple, Math.floor(Math.round(edge * scale) / multiple) * multiple)
  return { width: fitted(width), height: fitted(height) }
}
