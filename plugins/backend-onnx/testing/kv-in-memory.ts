import { KvCache } from "../generation/kv-cache.ts"
import { type HostBlock, KvBank, roundedCapacity } from "../sessions/kv-bank.ts"
import type { KvNumbers, KvShape } from "../sessions/kv-store.ts"

/** An empty cache in a bank of its own. */
export const cacheOf = (shape: KvShape): KvCache =>
  new KvCache(new KvBank(shape, 1, roundedCapacity(1)))

/** Keys and values of its first tokens, `[2*layers, kvHeads, tokens, headSize]`. */
export const contentsOf = ({ bank, row, length }: KvCache, tokens = length): KvNumbers =>
  (bank.read(row, 0, tokens) as HostBlock).data
