import { tinyBertShape, tinyBertTensors } from "./tiny-bert.ts"

const { width, heads, layers } = tinyBertShape

/**
 * The error function by its Taylor series, as Abramowitz and Stegun 7.1.26 is too coarse here;
 * arguments stay small.
 */
const erf = (x: number): number => {
  let [term, sum] = [x, x]
  for (let n = 1; n < 60; n++) {
    term *= (-x * x) / n
    sum += term / (2 * n + 1)
  }
  return (2 / Math.sqrt(Math.PI)) * sum
}

/**
 * A BERT sentence encoder in plain loops over doubles, written from the paper (arXiv 1810.04805):
 * the independent check of the backend's graph. Returns the vector before the map.
 */
export const bertReference = (ids: readonly number[], seed = 1): readonly number[] => {
  const tensors = new Map(tinyBertTensors(seed).map((tensor) => [tensor.name, tensor.values]))
  const row = (name: string, index: number) => [
    ...tensors.get(name)!.subarray(index * width, (index + 1) * width),
  ]
  const dense = (name: string, x: readonly number[]) => {
    const [weights, bias] = [tensors.get(`${name}.weight`)!, tensors.get(`${name}.bias`)!]
    return Array.from(bias, (b, out) =>
      x.reduce((sum, value, i) => sum + value * weights[out * x.length + i]!, b),
    )
  }
  const norm = (name: string, x: readonly number[]) => {
    const mean = x.reduce((a, b) => a + b) / width
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width
    return x.map(
      (value, i) =>
        ((value - mean) / Math.sqrt(variance + 1e-12)) *
          tensors.get(`${name}.LayerNorm.weight`)![i]! +
        tensors.get(`${name}.LayerNorm.bias`)![i]!,
    )
  }
  const add = (a: readonly number[], b: readonly number[]) => a.map((value, i) => value + b[i]!)
  let x = ids.map((id, position) => {
    const [word, place, segment] = [
      row("embeddings.word_embeddings.weight", id),
      row("embeddings.position_embeddings.weight", position),
      row("embeddings.token_type_embeddings.weight", 0),
    ]
    return norm("embeddings", add(add(word, place), segment))
  })
  for (let layer = 0; layer < layers; layer++) {
    const at = (name: string) => `encoder.layer.${layer}.${name}`
    const [q, k, v] = ["query", "key", "value"].map((name) =>
      x.map((token) => dense(at(`attention.self.${name}`), token)),
    )
    const size = width / heads
    const attend = (token: number) =>
      Array.from({ length: width }, (_, i) => {
        const head = i - (i % size)
        const scores = k!.map((key) =>
          Math.exp(
            key
              .slice(head, head + size)
              .reduce((sum, value, j) => sum + value * q![token]![head + j]!, 0) / Math.sqrt(size),
          ),
        )
        return (
          scores.reduce((sum, score, t) => sum + score * v![t]![i]!, 0) /
          scores.reduce((a, b) => a + b)
        )
      })
    x = x.map((token, t) =>
      norm(at("attention.output"), add(dense(at("attention.output.dense"), attend(t)), token)),
    )
    const gelu = (value: number) => (value / 2) * (1 + erf(value / Math.SQRT2))
    x = x.map((token) =>
      norm(
        at("output"),
        add(dense(at("output.dense"), dense(at("intermediate.dense"), token).map(gelu)), token),
      ),
    )
  }
  const mean = x.reduce(add).map((value) => value / ids.length)
  return mean.map((value) => value / Math.hypot(...mean))
}
