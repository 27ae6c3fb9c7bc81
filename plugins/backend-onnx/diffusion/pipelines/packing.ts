import type { Tensor } from "../model.ts"

interface Sizes {
  readonly channels: number
  readonly rows: number
  readonly columns: number
}

const sizesOf = ({ dims }: Tensor): Sizes => {
  const [, channels, rows, columns] = dims as readonly [number, number, number, number]
  return { channels, rows, columns }
}

/** Latents `[1,C,H,W]` as those of patches of 2 x 2, `[1,4C,H/2,W/2]`, channel by channel. */
export const patched = (latents: Tensor): Tensor => {
  const { channels, rows, columns } = sizesOf(latents)
  const [height, width] = [rows >> 1, columns >> 1]
  const data = new Float32Array(latents.data.length)
  let to = 0
  for (let channel = 0; channel < channels; channel++)
    for (let corner = 0; corner < 4; corner++)
      for (let y = 0; y < height; y++)
        for (let x = 0; x < width; x++)
          data[to++] =
            latents.data[(channel * rows + 2 * y + (corner >> 1)) * columns + 2 * x + (corner & 1)]!
  return { data, dims: [1, 4 * channels, height, width] }
}

/** The inverse of `patched`. */
export const unpatched = (patches: Tensor): Tensor => {
  const { channels: all, rows: height, columns: width } = sizesOf(patches)
  const [channels, rows, columns] = [all / 4, 2 * height, 2 * width]
  const data = new Float32Array(patches.data.length)
  let from = 0
  for (let channel = 0; channel < channels; channel++)
    for (let corner = 0; corner < 4; corner++)
      for (let y = 0; y < height; y++)
        for (let x = 0; x < width; x++)
          data[(channel * rows + 2 * y + (corner >> 1)) * columns + 2 * x + (corner & 1)] =
            patches.data[from++]!
  return { data, dims: [1, channels, rows, columns] }
}

/** A map `[1,C,H,W]` as tokens `[1,H*W,C]`. */
export const tokensOf = (map: Tensor): Tensor => {
  const { channels, rows, columns } = sizesOf(map)
  const count = rows * columns
  const data = new Float32Array(map.data.length)
  for (let channel = 0; channel < channels; channel++)
    for (let place = 0; place < count; place++)
      data[place * channels + channel] = map.data[channel * count + place]!
  return { data, dims: [1, count, channels] }
}

/** The first tokens of `[1,S,C]` as a map of the dimensions `[1,C,H,W]`. */
export const mapOf = (tokens: Float32Array, dims: readonly number[]): Tensor => {
  const [, channels, rows, columns] = dims as readonly [number, number, number, number]
  const count = rows * columns
  const data = new Float32Array(channels * count)
  for (let channel = 0; channel < channels; channel++)
    for (let place = 0; place < count; place++)
      data[channel * count + place] = tokens[place * channels + channel]!
  return { data, dims }
}

/** Tokens one after the other, `[1,S,C]`. */
export const joinedTokens = (parts: readonly Tensor[]): Tensor => {
  const width = parts[0]!.dims[2]!
  const data = new Float32Array(parts.reduce((sum, part) => sum + part.data.length, 0))
  let at = 0
  for (const part of parts) {
    data.set(part.data, at)
    at += part.data.length
  }
  return { data, dims: [1, data.length / width, width] }
}
