import type { AdapterChoice, DecoderSession, ForwardPass } from "../sessions/decoder.ts"
import { emptyStore, roundedCapacity } from "../sessions/kv-bank.ts"
import type { KvNumbers } from "../sessions/kv-store.ts"
import type { TokenPlaces } from "../sessions/token-places.ts"
import { KvCache } from "./kv-cache.ts"

const notFinite = () => new Error("the model's keys or values are not finite numbers")

/**
 * Whether a pass over keys and values on a device, which returns none of them, computed numbers that
 * are not finite: one of them makes all logits behind it so.
 */
const isBroken = (fresh: KvNumbers, logits: Float32Array): boolean =>
  fresh.length === 0 && Number.isNaN(logits[0])

interface PassKind {
  /** Rows in place of tokens, by their index in the tokens. */
  readonly embedded?: ForwardPass["embedded"]
  /** The tokens are of a prompt, which may have weights of its own. */
  readonly isPrompt?: boolean
}

/** Output of a forward pass over tokens that are not in the cache yet. */
export interface DraftVerification {
  /** `[vocabulary]` after each of the tokens. */
  readonly logits: readonly Float32Array[]
  /** Appends the keys and values of the first `count` tokens to the cache. */
  keep(count: number): void
}

/**
 * Forward passes of a decoder over sequences with a key-value cache: a chunk of one sequence, or
 * one token of each of many.
 */
export class CachedDecoder {
  private readonly decoder: DecoderSession

  constructor(decoder: DecoderSession) {
    this.decoder = decoder
  }

  /** The same tokens have the same numbers in any chunks and any company. */
  get isInvariant(): boolean {
    return this.decoder.isInvariant
  }

  /** Tokens of a prompt in one step. */
  get chunkTokens(): number {
    return this.decoder.chunkTokens ?? 64
  }

  /** Where a chunk ends that begins here: at multiples, as some sessions depend on chunks. */
  chunkEnd(from: number, promptTokens: number): number {
    const size = this.chunkTokens
    return Math.min(promptTokens, (Math.floor(from / size) + 1) * size)
  }

  /** The most tokens of all rows of a bank; undefined: any number. */
  get mostTokens(): number | undefined {
    return this.decoder.mostTokens
  }

  /** Prefixes are taken over by so many tokens: by chunks where numbers depend on them. */
  get prefixMultiple(): number {
    return this.isInvariant ? 1 : this.chunkTokens
  }

  /**
   * How many cached tokens another sequence may take over: those in whole chunks where numbers
   * depend on chunks, and only the prompt's where prompts have weights of their own.
   */
  reusable(cache: KvCache, promptTokens: number, wholeTokens: number): number {
    if (!this.isInvariant) return wholeTokens
    return this.decoder.readPrompt ? Math.min(cache.length, promptTokens) : cache.length
  }

  /** Whether a sequence that may get so many tokens is a long one. */
  isLong(reach: number): boolean {
    return reach > (this.decoder.shape.longAfter ?? Number.POSITIVE_INFINITY)
  }

  /** `reach`: how many tokens the sequence may get. */
  newCache(
    tokens = 1,
    {
      adapter,
      reach = 0,
      places,
    }: {
      readonly adapter?: AdapterChoice
      readonly reach?: number
      readonly places?: TokenPlaces
    } = {},
  ): KvCache {
    const isLong = this.isLong(reach)
    const capacity = roundedCapacity(tokens)
    const store = emptyStore(this.decoder, capacity)
    return new KvCache(store, { isLong, ...(adapter && { adapter }), ...(places && { places }) })
  }

  /** The caches are consecutive rows of one bank; each gets the same number of tokens. */
  private run(
    caches: readonly KvCache[],
    ids: ArrayLike<number>,
    logitsAt: readonly number[],
    { embedded, isPrompt = false }: PassKind = {},
  ) {
    const rows = caches.length
    const { bank, row } = caches[0]!
    const pass: ForwardPass = {
      rows,
      count: ids.length / rows,
      ids,
      ...(embedded && { embedded }),
      pastLens: caches.map((cache) => cache.length),
      long: caches.map((cache) => cache.isLong),
      places: caches.map((cache) => cache.places),
      ...bank.rowsFrom(row, rows),
      capacity: bank.capacity,
      logitsAt,
      adapters: caches.map(({ adapter }) => adapter),
    }
    return isPrompt && this.decoder.readPrompt
      ? this.decoder.readPrompt(pass)
      : this.decoder.forward(pass)
  }

  private split(logits: Float32Array, rows: number): readonly Float32Array[] {
    const size = this.decoder.shape.vocabulary
    return Array.from({ length: rows }, (_, row) => logits.subarray(row * size, (row + 1) * size))
  }

  /**
   * Runs `ids` behind the cached tokens and appends their keys and values. Returns the logits
   * `[vocabulary]` after the last one if wanted, else an empty array.
   */
  async forward(
    cache: KvCache,
    ids: ArrayLike<number>,
    wantsLogits: boolean,
    kind?: PassKind,
  ): Promise<Float32Array> {
    cache.reserve(ids.length)
    const logitsAt = wantsLogits ? [ids.length - 1] : []
    const { logits, fresh } = await this.run([cache], ids, logitsAt, kind)
    if (!cache.append(fresh, ids.length)) throw notFinite()
    if (wantsLogits && isBroken(fresh, logits)) {
      cache.clear()
      throw notFinite()
    }
    return logits
  }

  /** As `forward`, for tokens of a prompt. `embedded`: rows in place of tokens, by their index. */
  read(
    cache: KvCache,
    ids: ArrayLike<number>,
    wantsLogits: boolean,
    embedded?: ForwardPass["embedded"],
  ): Promise<Float32Array> {
    return this.forward(cache, ids, wantsLogits, { isPrompt: true, ...(embedded && { embedded }) })
  }

  /**
   * Runs the last token and draft tokens in one pass; the caller decides how many of them to keep
   * (speculative decoding, Leviathan et al., arXiv 2211.17192).
   */
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

  /**
   * Runs one token of each sequence; the caches are consecutive rows of one bank. Returns
   * `[vocabulary]` for each row, undefined where its keys or values are not finite.
   */
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
    return this.split(logits, rows).map((own, index) => {
      const cache = caches[index]!
      if (!cache.append(fresh, 1, 1, rows, index)) return undefined
      if (!isBroken(fresh, own)) return own
      cache.clear()
      return undefined
    })
  }
}
