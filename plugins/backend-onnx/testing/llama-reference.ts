import type { GgufContent } from "./gguf-writer.ts"
import { tinyShape } from "./tiny-llama.ts"

/**
 * The forward pass of a Llama in plain loops over doubles, one token after the other, written from
 * the paper (arXiv 2302.13971) and llama.cpp's
 * rotary layout (neighbouring pairs), without anything of the backend: the independent check of its
 * graph.
 */
export class LlamaReference {
  private readonly tensors: ReadonlyMap<string, Float32Array>
  private readonly keys: number[][][] = []
  private readonly values: number[][][] = []

  constructor(content: GgufContent) {
    this.tensors = new Map(
      content.tensors.map((tensor) => [
        tensor.name,
        new Float32Array(tensor.bytes.buffer, tensor.bytes.byteOffset, tensor.bytes.length / 4),
      ]),
    )
    for (let layer = 0; layer < tinyShape.layers; layer++) {
      this.keys.push([])
      this.values.push([])
    }
  }

  private times(name: string, x: readonly number[]): number[] {
    const weights = this.tensors.get(name)!
    return Array.from({ length: weights.length / x.length }, (_, row) =>
      x.reduce((sum, value, column) => sum + value * weights[row * x.length + column]!, 0),
    )
  }

  private norm(name: string, x: readonly number[]): number[] {
    const mean = x.reduce((sum, value) => sum + value * value, 0) / x.length
    const weights = this.tensors.get(name)!
    return x.map((value, i) => (value / Math.sqrt(mean + tinyShape.normEpsilon)) * weights[i]!)
  }

  private rotate(x: number[], position: number): number[] {
    const { headSize, ropeBase } = tinyShape
    const out = [...x]
    for (let i = 0; i < x.length; i += 2) {
      const angle = position * ropeBase ** (-(i % headSize) / headSize)
      out[i] = x[i]! * Math.cos(angle) - x[i + 1]! * Math.sin(angle)
      out[i + 1] = x[i]! * Math.sin(angle) + x[i + 1]! * Math.cos(angle)
    }
    return out
  }

  private attend(layer: number, q: readonly number[]): number[] {
    const { heads, kvHeads, headSize } = tinyShape
    const out: number[] = []
    for (let head = 0; head < heads; head++) {
      const shared = Math.floor(head / (heads / kvHeads)) * headSize
      const dot = (key: readonly number[]) =>
        Array.from(
          { length: headSize },
          (_, i) => q[head * headSize + i]! * key[shared + i]!,
        ).reduce((a, b) => a + b)
      const scores = this.keys[layer]!.map((key) => dot(key) / Math.sqrt(headSize))
      const largest = Math.max(...scores)
      const weights = scores.map((score) => Math.exp(score - largest))
      const total = weights.reduce((a, b) => a + b)
      for (let i = 0; i < headSize; i++)
        out.push(
          weights.reduce(
            (sum, weight, t) => sum + (weight / total) * this.values[layer]![t]![shared + i]!,
            0,
          ),
        )
    }
    return out
  }

  /** Logits after the token. */
  next(token: number): number[] {
    const { width, layers } = tinyShape
    const table = this.tensors.get("token_embd.weight")!
    let x = [...table.subarray(token * width, (token + 1) * width)]
    for (let layer = 0; layer < layers; layer++) {
      const at = (name: string) => `blk.${layer}.${name}.weight`
      const h = this.norm(at("attn_norm"), x)
      const position = this.keys[layer]!.length
      this.keys[layer]!.push(this.rotate(this.times(at("attn_k"), h), position))
      this.values[layer]!.push(this.times(at("attn_v"), h))
      const attended = this.times(
        at("attn_output"),
        this.attend(layer, this.rotate(this.times(at("attn_q"), h), position)),
      )
      x = x.map((value, i) => value + attended[i]!)
      const g = this.norm(at("ffn_norm"), x)
      const [gate, up] = [this.times(at("ffn_gate"), g), this.times(at("ffn_up"), g)]
      const down = this.times(
        at("ffn_down"),
        gate.map((value, i) => (value / (1 + Math.exp(-value))) * up[i]!),
      )
      x = x.map((value, i) => value + down[i]!)
    }
    return this.times("token_embd.weight", this.norm("output_norm.weight", x))
  }
}
