import { readFileSync } from "node:fs"
import { join } from "node:path"
import { KvCache } from "../generation/kv-cache.ts"
import type { Decoder } from "../sessions/decoder.ts"
import { emptyStore, roundedCapacity } from "../sessions/kv-bank.ts"
import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"

const text = readFileSync(join(import.meta.dirname, "perplexity.txt"), "utf8")
const chunk = 64

/** Returns the negative log-likelihood of token `wanted`. */
const surprise = (logits: Float32Array, wanted: number): number => {
  let largest = Number.NEGATIVE_INFINITY
  for (const logit of logits) largest = Math.max(largest, logit)
  let sum = 0
  for (const logit of logits) sum += Math.exp(logit - largest)
  return largest + Math.log(sum) - logits[wanted]!
}

/**
 * Returns the tokens of perplexity.txt, about a thousand; truncated to the window, or to `most`.
 */
export const tokensOfText = async (
  { folder, session }: Decoder,
  most = Number.POSITIVE_INFINITY,
): Promise<readonly number[]> => {
  const ids = (
    await loadChatTokenizer(folder).tokenizer.encode(text, null, { addSpecialTokens: false })
  ).getIds()
  return ids.slice(0, Math.min(most, session.shape.contextTokens))
}

/**
 * The perplexity of a sequence: the exponential of the mean negative log-likelihood of its tokens.
 */
export const perplexity = async ({ session }: Decoder, ids: readonly number[]): Promise<number> => {
  const bank = emptyStore(session, roundedCapacity(ids.length))
  const cache = new KvCache(bank)
  const size = session.shape.vocabulary
  let sum = 0
  for (let at = 0; at + 1 < ids.length; at += chunk) {
    const part = ids.slice(at, Math.min(at + chunk, ids.length - 1))
    cache.reserve(part.length)
    const { logits, fresh } = await session.forward({
      rows: 1,
      count: part.length,
      ids: part,
      pastLens: [cache.length],
      ...bank.rowsFrom(0, 1),
      capacity: cache.capacity,
      logitsAt: part.map((_, i) => i),
    })
    cache.append(fresh, part.length)
    for (let i = 0; i < part.length; i++)
      sum += surprise(logits.subarray(i * size, (i + 1) * size), ids[at + i + 1]!)
  }
  return Math.exp(sum / (ids.length - 1))
}
