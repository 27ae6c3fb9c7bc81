import type { DecoderSession } from "../sessions/decoder.ts"
import { KvCache } from "./kv-cache.ts"

const notFinite = () => new Error("the model's keys or values are not finite numbers")

/** What a model answered to tokens that are not in the cache yet. */
export interface DraftVerification {
  /** After each of them. */
  readonly logits: readonly Float32Array[]
  /** Puts the first `count` of them into the cache. */
  keep(count: number): void
}

/** Steps sequences through a decoder: one, a chunk at a time, or many, a token at a time. */
export class CachedDecoder {
  private readonly decoder: DecoderSession

  constructor(decoder: DecoderSession) {
    this.decoder = decoder
  }

  newCache(tokens = 1): KvCache {
    return new KvCache(this.decoder.shape, tokens)
  }

  /** The caches lie one after the other in their bank; each gets as many of the tokens. */
  private run(caches: readonly KvCache[], ids: ArrayLike<number>, logitsAt: readonly number[]) {
    const rows = caches.length
    const { bank, row } = caches[0]!
    return this.decoder.forward({
      rows,
      count: ids.length / rows,
      ids,
      pastLens: caches.map((cache) => cache.length),
      past: bank.rowsFrom(row, rows),
      capacity: bank.capacity,
      logitsAt,
    })
  }

  private split(logits: Float32Array, rows: number): readonly Float32Array[] {
    const size = this.decoder.shape.vocabulary
    return Array.from({ length: rows }, (_, row) => logits.subarray(row * size, (row + 1) * size))
  }

  /** Reads `ids` after what the cache holds and puts them into it; answers the logits after the last one, if wanted. */
  async forward(
    cache: KvCache,
    ids: ArrayLike<number>,
    wantsLogits: boolean,
  ): Promise<Float32Array> {
    cache.reserve(ids.length)
    const { logits, fresh } = await this.run([cache], ids, wantsLogits ? [ids.length - 1] : [])
    if (!cache.append(fresh, ids.length)) throw notFinite()
    return logits
  }

  /** Reads `ids` after what the cache holds, and leaves it to the caller how many of them stay. */
  async verifyDrafts(cache: KvCache, ids: readonly number[]): Promise<DraftVerification> {
    cache.reserve(ids.length)
    const { logits, fresh } = await this.run(
      [cache],
      ids,
      ids.map((_, i) => i),
    )
    const keep = (count: number) => {
      if (!cache.append(fresh, ids.length, count)) throw notFinite()
    }
    return { logits: this.split(logits, ids.length), keep }
  }

  /** Reads one token for each of the caches, which lie one after the other in one bank. A row whose numbers are not finite has no logits. */
  async decode(
    caches: readonly KvCache[],
    ids: readonly number[],
  ): Promise<readonly (Float32Array | undefined)[]> {
    const rows = caches.length
    const { logits, fresh } = await this.run(
      caches,
      ids,
      ids.map((_, i) => i),
    )
    return this.split(logits, rows).map((own, index) =>
      caches[index]!.append(fresh, 1, 1, rows, index) ? own : undefined,
    )
  }
}
