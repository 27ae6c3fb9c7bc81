import { blockTokens } from "../sessions/kv-store.ts"
import type { ThreadStats } from "../worker/protocol.ts"
import { type Block, BlockTree, blockKey, matchingTokens } from "./block-tree.ts"
import type { KvCache } from "./kv-cache.ts"

/** What a request may take from the cache. */
export interface PrefixMatch {
  readonly tokens: number
  /** How many of them a cache breakpoint covered when they were written. */
  readonly markedTokens: number
  restoreInto(cache: KvCache): void
}

export interface PrefixQuery {
  /** Match at most so many tokens. */
  readonly most: number
  /** Match a multiple of so many tokens. */
  readonly multipleOf?: number
  /** Where the cached prefixes of this request end, in tokens, rising. */
  readonly breakpoints: readonly number[]
}

export interface KeptSequence {
  /** Tokens of the sequence, of which the cache holds the first `tokens`. */
  readonly ids: ArrayLike<number>
  readonly tokens: number
  /** Where the cached prefixes of this request end, in tokens, rising. */
  readonly breakpoints: readonly number[]
}

/**
 * Keys and values of beginnings of sequences, so that the same prefix is not computed again. Owners
 * never see each other's blocks.
 * Everything is kept; only what a cache breakpoint covered is counted as read or written, to the
 * token.
 */
export class PrefixCache {
  private readonly tree: BlockTree
  private readonly maxBytes: number
  private queriedTokens = 0
  private foundTokens = 0

  /** `tokenBytes`: size of the keys and values of one token. */
  constructor(maxBytes: number, tokenBytes: number) {
    this.maxBytes = maxBytes
    this.tree = new BlockTree(maxBytes, tokenBytes)
  }

  stats(): Omit<ThreadStats, "kvCacheUsage"> {
    return {
      prefixCacheUsage: this.maxBytes > 0 ? this.bytes / this.maxBytes : 0,
      prefixCacheQueries: this.queriedTokens,
      prefixCacheHits: this.foundTokens,
    }
  }

  get bytes(): number {
    return this.tree.bytes
  }

  /** The longest short block right behind the path that ends at a cache breakpoint. */
  private markedEnd(
    owner: string,
    path: readonly Block[],
    ids: ArrayLike<number>,
    most: number,
  ): Block | undefined {
    const at = path.length * blockTokens
    const children = this.tree.childrenOf(owner, path)
    for (let length = Math.min(blockTokens - 1, most - at); children && length > 0; length--) {
      const block = children.get(blockKey(ids, at, at + length))
      if (block?.marked) return block
    }
    return undefined
  }

  /** The block right behind the path that has most tokens in common with the sequence. */
  private closest(
    owner: string,
    path: readonly Block[],
    ids: ArrayLike<number>,
    most: number,
  ): { readonly block: Block; readonly tokens: number } | undefined {
    const at = path.length * blockTokens
    let [best, tokens]: [Block | undefined, number] = [undefined, 0]
    for (const block of this.tree.childrenOf(owner, path)?.values() ?? []) {
      const same = block.data.isLost ? 0 : matchingTokens(block, ids, at, most)
      if (same > tokens) [best, tokens] = [block, same]
    }
    return best && { block: best, tokens }
  }

  find(
    owner: string,
    ids: ArrayLike<number>,
    { most, multipleOf = 1, breakpoints }: PrefixQuery,
  ): PrefixMatch {
    const whole = this.tree.path(owner, ids, most)
    const part = this.closest(owner, whole, ids, most)
    this.tree.touch(owner, part ? [...whole, part.block] : whole)
    const markedTokens = this.markedIn(owner, whole, ids, breakpoints.at(-1) ?? 0)
    const matching = whole.length * blockTokens + (part?.tokens ?? 0)
    const tokens = matching - (matching % multipleOf)
    this.queriedTokens += ids.length
    this.foundTokens += tokens
    const restoreInto = (cache: KvCache) => {
      cache.reserve(tokens)
      for (const block of part ? [...whole, part.block] : whole) {
        const count = Math.min(block.tokens, tokens - cache.length)
        cache.bank.restore(cache.row, cache.length, count, block.data)
        cache.length += count
      }
    }
    return { tokens, markedTokens, restoreInto }
  }

  /**
   * The number of tokens that a breakpoint covered when they were written, up to the last
   * breakpoint of this request.
   */
  private markedIn(
    owner: string,
    whole: readonly Block[],
    ids: ArrayLike<number>,
    lastBreakpoint: number,
  ): number {
    let blocks = 0
    while (whole[blocks]?.marked && (blocks + 1) * blockTokens <= lastBreakpoint) blocks++
    const end = this.markedEnd(owner, whole.slice(0, blocks), ids, lastBreakpoint)
    return blocks * blockTokens + (end?.tokens ?? 0)
  }

  /**
   * Copies the beginning of a sequence into the cache; returns the number of tokens up to the last
   * breakpoint that the cache holds now.
   */
  keep(owner: string, cache: KvCache, { ids, tokens, breakpoints }: KeptSequence): number {
    const path = this.tree.path(owner, ids, tokens)
    this.tree.touch(owner, path)
    for (let at = path.length * blockTokens; at + blockTokens <= tokens; at += blockTokens) {
      const siblings = this.tree.childrenOf(owner, path)
      const block = this.tree.add(owner, path, cache, {
        ids,
        from: at,
        to: at + blockTokens,
      })
      if (!block) break
      path.push(block)
      this.dropBeginnings(siblings, block)
    }
    this.keepEnd(owner, path, cache, ids, tokens)
    const ends = breakpoints.filter((breakpoint) => breakpoint <= tokens)
    const markedTokens = this.mark(owner, path, cache, ids, ends)
    this.tree.touch(owner, path)
    return markedTokens
  }

  /**
   * Keeps the tokens behind the whole blocks in a short one, unless another block holds them
   * already, so that the same text can be continued at its very end.
   */
  private keepEnd(
    owner: string,
    path: readonly Block[],
    cache: KvCache,
    ids: ArrayLike<number>,
    tokens: number,
  ): void {
    const from = path.length * blockTokens
    const left = tokens - from
    if (
      left <= 0 ||
      left >= blockTokens ||
      (this.closest(owner, path, ids, tokens)?.tokens ?? 0) === left
    )
      return
    this.tree.add(owner, path, cache, { ids, from, to: tokens })
  }

  /** Drops short blocks that a whole block beside them contains. */
  private dropBeginnings(siblings: ReadonlyMap<string, Block> | undefined, block: Block): void {
    for (const other of [...(siblings?.values() ?? [])])
      if (
        other.tokens < blockTokens &&
        !other.marked &&
        matchingTokens(other, block.ids, 0, blockTokens) === other.tokens
      )
        this.tree.drop(other)
  }

  /**
   * Marks the blocks up to the last breakpoint, and keeps the tokens between whole blocks and
   * breakpoints in short ones.
   */
  private mark(
    owner: string,
    path: readonly Block[],
    cache: KvCache,
    ids: ArrayLike<number>,
    ends: readonly number[],
  ): number {
    const covered = path.slice(0, Math.floor((ends.at(-1) ?? 0) / blockTokens))
    for (const block of covered) block.marked = true
    let markedTokens = covered.length * blockTokens
    for (const end of ends) {
      const before = path.slice(0, Math.floor(end / blockTokens))
      const from = before.length * blockTokens
      if (from === end || end - from >= blockTokens) continue
      const known = this.tree.childrenOf(owner, before)?.get(blockKey(ids, from, end))
      const short = known ?? this.tree.add(owner, before, cache, { ids, from, to: end }, path)
      if (!short) continue
      short.marked = true
      if (end === ends.at(-1)) markedTokens = end
    }
    return markedTokens
  }
}
