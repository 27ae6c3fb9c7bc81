import { join } from "node:path"
import { graphFile } from "../onnx/graph-cache.ts"
import type { LlamaConfig } from "../onnx/llama-config.ts"
import type { GgufFile } from "../weights/gguf-file.ts"
import { KvCache } from "./kv-cache.ts"
import { floats, longs, openSession, type Session } from "./onnx-session.ts"

/** A Llama-family decoder that is open: the graph, and the embedding table, whose rows are read from the model file when needed. */
export class LlamaSession {
  readonly config: LlamaConfig
  private readonly session: Session
  private readonly file: GgufFile

  private constructor(config: LlamaConfig, session: Session, file: GgufFile) {
    this.config = config
    this.session = session
    this.file = file
  }

  static async open(config: LlamaConfig, file: GgufFile, folder: string, threads: number): Promise<LlamaSession> {
    return new LlamaSession(config, await openSession(join(folder, graphFile), threads), file)
  }

  newCache(tokens: number): KvCache {
    return new KvCache(this.config, tokens)
  }

  private embed(ids: ArrayLike<number>): Float32Array {
    const { width } = this.config
    const table = this.file.tensor("token_embd.weight")
    const out = new Float32Array(ids.length * width)
    for (let i = 0; i < ids.length; i++) table.type.decode(this.file.rows(table, ids[i]!, 1), out.subarray(i * width, (i + 1) * width))
    return out
  }

  /** Reads `ids` after what the cache holds and puts them into it; answers the logits after the last one, if wanted. */
  async step(cache: KvCache, ids: ArrayLike<number>, wantsLogits: boolean): Promise<Float32Array> {
    const { layers, kvHeads, headSize, width } = this.config
    const count = ids.length
    cache.reserve(count)
    const feeds: Record<string, ReturnType<typeof floats>> = {
      x: floats(this.embed(ids), [1, count, width]),
      position_ids: longs(
        Array.from({ length: count }, (_, i) => cache.length + i),
        [1, count],
      ),
      past_lens: longs([cache.length]),
      logit_idx: longs(wantsLogits ? [count - 1] : []),
    }
    const shape = [1, kvHeads, cache.capacity, headSize]
    for (let layer = 0; layer < layers; layer++) {
      feeds[`past.${layer}.k`] = floats(cache.arrays[2 * layer]!, shape)
      feeds[`past.${layer}.v`] = floats(cache.arrays[2 * layer + 1]!, shape)
    }
    const { logits, new_kv: fresh } = await this.session.run(feeds)
    cache.append(fresh!.data as Float32Array, count)
    return logits!.data as Float32Array
  }

  async close(): Promise<void> {
    await this.session.release()
    this.file.close()
  }
}
