import { type Random, seededRandom } from "../../sampling/random.ts"

/**
 * Standard normal numbers of a seed: pairs by the method of Box and Muller (1958) from xoshiro128**.
 * The same numbers wherever the same version of the JavaScript engine runs.
 */
export const seededNoise = (seed: number): ((length: number) => Float32Array) => {
  const random: Random = seededRandom(seed)
  return (length) => {
    const values = new Float32Array(length)
    for (let i = 0; i < length; i += 2) {
      // 1 - u is in (0, 1], whose logarithm is finite
      const radius = Math.sqrt(-2 * Math.log(1 - random()))
      const angle = 2 * Math.PI * random()
      values[i] = radius * Math.cos(angle)
      if (i + 1 < length) values[i + 1] = radius * Math.sin(angle)
    }
    return values
  }
}
