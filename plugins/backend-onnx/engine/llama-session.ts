import type { DecoderSession } from "../families/decoder.ts"
import { KvCache } from "./kv-cache.ts"

/** Steps one sequence through a decoder. */
export class LlamaSession {
  private readonly decoder: DecoderSession

  constructor(decoder: DecoderSession) {
    this.decoder = decoder
  }

  newCache(tokens: number): KvCache {
    return new KvCache(this.decoder.shape, tokens)
  }

  /** Reads `ids` after what the cache holds and puts them into it; answers the logits after the last one, if wanted. */
  async step(cache: KvCache, ids: ArrayLike<number>, wantsLogits: boolean): Promise<Float32Array> {
    const count = ids.length
    cache.reserve(count)
    const past = { past: cache.arrays, pastLens: [cache.length], capacity: cache.capacity }
    const { logits, fresh } = await this.decoder.step({ rows: 1, count, ids, ...past, logitsAt: wantsLogits ? [count - 1] : [] })
    cache.append(fresh, count)
    return logits
  }
}
