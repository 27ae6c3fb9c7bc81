import type { ImageModel, Tensor } from "../model.ts"
import type { Autoencoder } from "../vae/autoencoder.ts"
import { pixelsOf } from "./pictures.ts"

/** The means of squares of latents `[1,C,H,W]`, so that no side has more than `most` positions. */
export const averaged = (latents: Tensor, most: number): Tensor => {
  const [, channels, rows, columns] = latents.dims as readonly [number, number, number, number]
  const edge = Math.ceil(Math.max(rows, columns) / most)
  if (edge <= 1) return latents
  const [height, width] = [Math.ceil(rows / edge), Math.ceil(columns / edge)]
  const data = new Float32Array(channels * height * width)
  /** The mean of one square, which is cut where the map ends. */
  const meanAt = (channel: number, top: number, left: number): number => {
    const [bottom, right] = [Math.min(rows, top + edge), Math.min(columns, left + edge)]
    let sum = 0
    for (let y = top; y < bottom; y++)
      for (let x = left; x < right; x++) sum += latents.data[(channel * rows + y) * columns + x]!
    return sum / ((bottom - top) * (right - left))
  }
  let to = 0
  for (let channel = 0; channel < channels; channel++)
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++) data[to++] = meanAt(channel, y * edge, x * edge)
  return { data, dims: [1, channels, height, width] }
}

/**
 * Previews of an autoencoder's latents: of their means, so that the decoder, by far the dearest run
 * of a picture with few steps, has no more to decode than the preview shows.
 */
export const previewBy =
  (vae: Autoencoder): NonNullable<ImageModel["preview"]> =>
  async (latents, side, pause) =>
    pixelsOf(await vae.decode(averaged(latents, Math.ceil(side / vae.edge)), pause))
