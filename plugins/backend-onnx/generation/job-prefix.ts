import type { GenerateRequest } from "./decoder-jobs.ts"
import type { KvCache } from "./kv-cache.ts"
import type { Model } from "./model.ts"

/** A sequence: `cache` has the keys and values of its first tokens. */
interface Sequence {
  readonly request: GenerateRequest
  readonly cache: KvCache
  readonly ids: readonly number[]
}

/** Whose prefixes a sequence shares: keys that were rotated in different ways are never mixed. */
export const prefixOwner = ({
  request,
  cache,
}: {
  readonly request: { readonly owner: string }
  readonly cache: KvCache
}): string => (cache.isLong ? `${request.owner}\nlong` : request.owner)

/** What an answer takes from the prefix cache, and what it leaves there. */
export class JobPrefix {
  /** Tokens that others may take over, where results depend on chunks. */
  wholeTokens = 0
  /** How many tokens a cache breakpoint covered when they were written. */
  readTokens = 0
  private readonly model: Model
  private readonly sequence: Sequence
  private isKeptLater = false

  constructor(model: Model, sequence: Sequence) {
    this.model = model
    this.sequence = sequence
  }

  private get owner(): string {
    return prefixOwner(this.sequence)
  }

  /** Restores a prefix of the prompt. At least one token is left, for its logits. */
  restore(): void {
    const { session, prefixes } = this.model
    const { cache, request } = this.sequence
    const found = prefixes.find(this.owner, request.promptIds, {
      most: request.promptIds.length - 1,
      multipleOf: session.prefixMultiple,
      breakpoints: request.cacheBreakpoints,
    })
    found.restoreInto(cache)
    this.wholeTokens = found.tokens
    this.readTokens = found.markedTokens
  }

  /** Notes a chunk of the prompt that was read. */
  chunkRead(from: number, to: number): void {
    if (this.wholeTokens === from && to - from === this.model.session.chunkTokens)
      this.wholeTokens = to
  }

  /**
   * Keeps a prompt with breakpoints, and returns how many tokens they add to the cache; one without
   * is kept after the step.
   */
  keepMarked(): number {
    const { cacheBreakpoints } = this.sequence.request
    this.isKeptLater = cacheBreakpoints.length === 0
    return this.isKeptLater ? 0 : Math.max(0, this.keep(cacheBreakpoints) - this.readTokens)
  }

  /** Called after a step, so that the first token doesn't wait for the copy of its prompt. */
  stepped(): void {
    if (this.isKeptLater) this.keepAll()
  }

  /** Keeps what the sequence has, unless there is no memory for it. */
  keepAll(): void {
    this.isKeptLater = false
    try {
      if (this.sequence.cache.length) this.keep([])
    } catch {
      // the request goes on without it
    }
  }

  private keep(breakpoints: readonly number[]): number {
    const { cache, ids, request } = this.sequence
    const { session, prefixes } = this.model
    const tokens = session.reusable(cache, request.promptIds.length, this.wholeTokens)
    return prefixes.keep(this.owner, cache, {
      ids,
      tokens,
      breakpoints: breakpoints.map((end) => Math.min(end, tokens)),
    })
  }
}
