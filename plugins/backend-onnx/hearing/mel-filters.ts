import type { Spectrogram } from "./hearing-config.ts"

const mostHertz = 8000
/** Slaney's scale (Auditory Toolbox): linear up to 1000 Hz, logarithmic above. */
const linearHertz = 200 / 3
const [breakHertz, breakMel] = [1000, 15]
const logStep = Math.log(6.4) / 27

const melOf = (hertz: number): number =>
  hertz < breakHertz ? hertz / linearHertz : breakMel + Math.log(hertz / breakHertz) / logStep
const hertzOf = (mel: number): number =>
  mel < breakMel ? mel * linearHertz : breakHertz * Math.exp(logStep * (mel - breakMel))

/**
 * Triangles of equal area over the frequencies of a Fourier transform, as Whisper has them: `[bins,
 * window / 2 + 1]`.
 */
export const melFilters = ({ rate, window, bins }: Spectrogram): readonly Float64Array[] => {
  const top = melOf(Math.min(mostHertz, rate / 2))
  const edges = Array.from({ length: bins + 2 }, (_, i) => hertzOf((top * i) / (bins + 1)))
  return Array.from({ length: bins }, (_, bin) => {
    const [low, middle, high] = edges.slice(bin, bin + 3) as [number, number, number]
    return Float64Array.from({ length: window / 2 + 1 }, (_, i) => {
      const hertz = (i * rate) / window
      const rising = (hertz - low) / (middle - low)
      const falling = (high - hertz) / (high - middle)
      return (2 / (high - low)) * Math.max(0, Math.min(rising, falling))
    })
  })
}
