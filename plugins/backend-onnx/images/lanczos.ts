import type { Size } from "../architectures/image-preprocessing.ts"

const lobes = 3
const channels = 3

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x))
const lanczos = (x: number): number => (Math.abs(x) < lobes ? sinc(x) * sinc(x / lobes) : 0)

/** The pixels that an output pixel is made of, and their weights, which add up to 1. */
interface Taps {
  readonly first: number
  readonly weights: Float64Array
}

/** The taps of each output pixel of a line, with centres where PIL has them. */
const tapsOf = (from: number, to: number): readonly Taps[] => {
  const scale = from / to
  const wide = Math.max(1, scale)
  return Array.from({ length: to }, (_, at) => {
    const centre = (at + 0.5) * scale
    const first = Math.max(0, Math.trunc(centre - lobes * wide + 0.5))
    const end = Math.min(from, Math.trunc(centre + lobes * wide + 0.5))
    const weights = Float64Array.from({ length: end - first }, (_, i) =>
      lanczos((first + i - centre + 0.5) / wide),
    )
    const sum = weights.reduce((a, b) => a + b, 0)
    return { first, weights: weights.map((weight) => weight / sum) }
  })
}

/** Resizes lines of values that are `step` apart; each begins at one of `starts`. */
const alongLines = (
  pixels: Uint8Array,
  into: Uint8ClampedArray,
  taps: readonly Taps[],
  {
    lines,
    from,
    to,
  }: {
    readonly lines: number
    readonly from: { readonly line: number; readonly step: number }
    readonly to: { readonly line: number; readonly step: number }
  },
): void => {
  for (let line = 0; line < lines; line++)
    for (const [at, { first, weights }] of taps.entries())
      for (let channel = 0; channel < channels; channel++) {
        let sum = 0
        let place = line * from.line + first * from.step + channel
        for (const weight of weights) {
          sum += weight * pixels[place]!
          place += from.step
        }
        into[line * to.line + at * to.step + channel] = sum
      }
}

/**
 * Resizes bytes of red, green and blue as PIL does with its filter LANCZOS. libvips, which is
 * faster, lays pixels of enlarged pictures half a pixel further.
 */
export const resizedByLanczos = (pixels: Uint8Array, from: Size, to: Size): Uint8Array => {
  let all = pixels
  const bytes = (width: number) => width * channels
  if (to.width !== from.width) {
    const wide = new Uint8ClampedArray(bytes(to.width) * from.height)
    alongLines(all, wide, tapsOf(from.width, to.width), {
      lines: from.height,
      from: { line: bytes(from.width), step: channels },
      to: { line: bytes(to.width), step: channels },
    })
    all = new Uint8Array(wide.buffer)
  }
  if (to.height === from.height) return all
  const high = new Uint8ClampedArray(bytes(to.width) * to.height)
  alongLines(all, high, tapsOf(from.height, to.height), {
    lines: to.width,
    from: { line: channels, step: bytes(to.width) },
    to: { line: channels, step: bytes(to.width) },
  })
  return new Uint8Array(high.buffer)
}
