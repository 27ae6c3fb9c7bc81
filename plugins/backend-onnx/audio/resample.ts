/** Zero crossings of the filter on each side. */
const crossings = 16
/** Shape of the Kaiser window: 80 dB below in the stop band. */
const beta = 8
/**
 * Rates without a common divisor have as many phases as samples a second, and making a filter costs
 * more than using it: beyond so many, the nearest one is taken. Usual rates have up to 640.
 */
const mostPhases = 1024

/** The modified Bessel function of the first kind, of order 0. */
const bessel = (x: number): number => {
  let [sum, term] = [1, 1]
  for (let k = 1; term > 1e-12 * sum; k++) {
    term *= (x / (2 * k)) ** 2
    sum += term
  }
  return sum
}

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b))

/**
 * Samples at another rate, by a sinc filter with a Kaiser window at the lower of both rates, so that
 * nothing above it folds down (Smith, Digital Audio Resampling, ccrma.stanford.edu/~jos/resample).
 */
export const resampled = (samples: Float32Array, from: number, to: number): Float32Array => {
  if (from === to) return samples
  const divisor = greatestDivisor(from, to)
  const [up, down] = [to / divisor, from / divisor]
  const cutoff = Math.min(1, to / from)
  const reach = Math.ceil(crossings / cutoff)
  const phases = Math.min(up, mostPhases)
  const filters = new Map<number, Float64Array>()
  /** Weights of the samples around a place that is `phase / phases` behind one. */
  const filterAt = (phase: number): Float64Array => {
    const known = filters.get(phase)
    if (known) return known
    const weights = Float64Array.from({ length: 2 * reach }, (_, i) => {
      const x = i - reach + 1 - phase / phases
      const angle = Math.PI * x * cutoff
      const window = Math.max(0, 1 - (x / reach) ** 2)
      const sinc = angle === 0 ? 1 : Math.sin(angle) / angle
      return (cutoff * sinc * bessel(beta * Math.sqrt(window))) / bessel(beta)
    })
    filters.set(phase, weights)
    return weights
  }
  const out = new Float32Array(Math.round((samples.length * to) / from))
  for (let i = 0; i < out.length; i++) {
    const at = i * down
    const whole = Math.floor(at / up)
    const weights = filterAt(Math.round(((at % up) * phases) / up))
    const first = whole - reach + 1
    let sum = 0
    for (let j = Math.max(0, -first); j < weights.length && first + j < samples.length; j++)
      sum += weights[j]! * samples[first + j]!
    out[i] = sum
  }
  return out
}
