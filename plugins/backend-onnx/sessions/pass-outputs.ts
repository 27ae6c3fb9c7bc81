import { Tensor } from "../onnx/runtime.ts"
import type { ForwardPass } from "./decoder.ts"
import { type KvNumbers, type KvShape, zeros } from "./kv-store.ts"

type Outputs = Readonly<Record<string, Tensor | null>>

/**
 * Memory that the passes of a session write their outputs to, one after the other. New memory for
 * each step would make V8 collect garbage on the cores that compute the next one.
 */
export class PassOutputs {
  private readonly shape: KvShape & { readonly vocabulary: number }
  private readonly halves: boolean
  private logits = new Float32Array(0)
  private fresh: KvNumbers

  /** `halves`: new keys and values are halves as their bits. */
  constructor(shape: KvShape & { readonly vocabulary: number }, halves: boolean) {
    this.shape = shape
    this.halves = halves
    this.fresh = zeros(halves, 0)
  }

  /** Returns the tensors for a pass. What the last ones hold is overwritten. */
  of({ rows, count, logitsAt }: ForwardPass): Outputs {
    const { layers, kvHeads, headSize, vocabulary } = this.shape
    const width = kvHeads * headSize
    const [logits, fresh] = [logitsAt.length * vocabulary, 2 * layers * rows * count * width]
    if (this.logits.length < logits) this.logits = new Float32Array(logits)
    if (this.fresh.length < fresh) this.fresh = zeros(this.halves, fresh)
    return {
      logits: logits
        ? new Tensor("float32", this.logits.subarray(0, logits), [1, logitsAt.length, vocabulary])
        : null,
      new_kv: new Tensor(
        this.halves ? "uint16" : "float32",
        this.fresh.subarray(0, fresh),
        this.halves ? [2 * layers, rows, count, width] : [2 * layers * rows, count, width],
      ),
    }
  }
}
