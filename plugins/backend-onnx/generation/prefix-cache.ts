import type { KvCache } from "./kv-cache.ts"

/** Tokens of a block. */
export const blockTokens = 16

/** Keys and values of up to 16 tokens that follow those of the parent. Shorter ones end a marked prefix, or a text. */
interface Block {
  readonly parent: Block | undefined
  readonly key: string
  readonly ids: readonly number[]
  readonly tokens: number
  readonly children: Map<string, Block>
  data: Float32Array
  /** A `cache_control` marker covers it, so reading it is counted. */
  marked: boolean
  /** Computed in whole chunks at fixed borders, so that a request with a seed may use it. */
  exact: boolean
}

/** What a request may take from the cache. */
export interface PrefixMatch {
  readonly tokens: number
  /** Of these, tokens that a marker covered when they were written. */
  readonly markedTokens: number
  /** Of these, tokens that were computed in whole chunks. */
  readonly exactTokens: number
  restoreInto(cache: KvCache): void
}

export interface PrefixQuery {
  /** No more tokens than this. */
  readonly most: number
  /** For a request with a seed: exact blocks only, up to a border of this many tokens. */
  readonly exactChunk?: number
  /** Where markers of this request end, rising. */
  readonly breakpoints: readonly number[]
}

export interface KeptSequence {
  /** Tokens of the sequence, of which the cache holds the first `tokens`. */
  readonly ids: ArrayLike<number>
  readonly tokens: number
  /** Up to here they were computed in whole chunks. */
  readonly exactTokens: number
  readonly breakpoints: readonly number[]
}

const sameFrom = (block: Block, ids: ArrayLike<number>, at: number, most: number): number => {
  const end = Math.min(block.tokens, most - at)
  let same = 0
  while (same < end && block.ids[same] === ids[at + same]) same++
  return same
}

const keyOf = (ids: ArrayLike<number>, from: number, to: number): string => {
  let key = ""
  for (let i = from; i < to; i++) key += `${ids[i]},`
  return key
}

/**
 * Keys and values of beginnings of texts, one tree of blocks for each owner; owners never meet. What was not used for longest goes first.
 * Blocks that are used together are touched from the last to the first, so the oldest block never has children.
 */
export class PrefixCache {
  private readonly maxBytes: number
  private readonly roots = new Map<string, Map<string, Block>>()
  /** Oldest first, with the owner. */
  private readonly byAge = new Map<Block, string>()
  private readonly spare: Float32Array[] = []
  private readonly tokenFloats: number
  bytes = 0

  /** `tokenBytes`: what a token takes. */
  constructor(maxBytes: number, tokenBytes: number) {
    this.maxBytes = maxBytes
    this.tokenFloats = tokenBytes / 4
  }

  /** Whole blocks from the beginning, as many as match. */
  private path(owner: string, ids: ArrayLike<number>, most: number): Block[] {
    const path: Block[] = []
    let children = this.roots.get(owner)
    for (let at = 0; children && at + blockTokens <= most; at += blockTokens) {
      const block = children.get(keyOf(ids, at, at + blockTokens))
      if (!block) break
      path.push(block)
      children = block.children
    }
    return path
  }

  /** The longest short block that ends a marked prefix right behind the path. */
  private tail(
    owner: string,
    path: readonly Block[],
    ids: ArrayLike<number>,
    most: number,
  ): Block | undefined {
    const at = path.length * blockTokens
    const children = this.childrenOf(owner, path)
    for (let length = Math.min(blockTokens - 1, most - at); children && length > 0; length--) {
      const block = children.get(keyOf(ids, at, at + length))
      if (block?.marked) return block
    }
    return undefined
  }

  /** The block right behind the path that has most tokens in common with the text. */
  private closest(
    owner: string,
    path: readonly Block[],
    ids: ArrayLike<number>,
    most: number,
  ): { readonly block: Block; readonly tokens: number } | undefined {
    const at = path.length * blockTokens
    let [best, tokens]: [Block | undefined, number] = [undefined, 0]
    for (const block of this.childrenOf(owner, path)?.values() ?? []) {
      const same = sameFrom(block, ids, at, most)
      if (same > tokens) [best, tokens] = [block, same]
    }
    return best && { block: best, tokens }
  }

  private touch(owner: string, path: readonly Block[]): void {
    for (const block of [...path].reverse()) {
      this.byAge.delete(block)
      this.byAge.set(block, owner)
    }
  }

  find(
    owner: string,
    ids: ArrayLike<number>,
    { most, exactChunk, breakpoints }: PrefixQuery,
  ): PrefixMatch {
    const whole = this.path(owner, ids, most)
    const part = exactChunk === undefined ? this.closest(owner, whole, ids, most) : undefined
    this.touch(owner, part ? [...whole, part.block] : whole)
    const markedTokens = this.markedIn(owner, whole, ids, breakpoints.at(-1) ?? 0)
    const usable =
      exactChunk === undefined ? whole : whole.slice(0, this.exactBlocks(whole, exactChunk))
    const tokens = usable.length * blockTokens + (part?.tokens ?? 0)
    const exactTokens = this.exactBlocks(usable, blockTokens) * blockTokens
    const restoreInto = (cache: KvCache) => {
      cache.reserve(tokens)
      for (const [block, count] of [
        ...usable.map((block) => [block, blockTokens] as const),
        ...(part ? [[part.block, part.tokens] as const] : []),
      ]) {
        cache.bank.restore(cache.row, cache.length, count, block.data)
        cache.length += count
      }
    }
    return { tokens, markedTokens, exactTokens, restoreInto }
  }

  /** How much of the beginning a marker covered when it was written, up to the last marker of this request. */
  private markedIn(
    owner: string,
    whole: readonly Block[],
    ids: ArrayLike<number>,
    lastBreakpoint: number,
  ): number {
    let blocks = 0
    while (whole[blocks]?.marked && (blocks + 1) * blockTokens <= lastBreakpoint) blocks++
    return (
      blocks * blockTokens +
      (this.tail(owner, whole.slice(0, blocks), ids, lastBreakpoint)?.tokens ?? 0)
    )
  }

  private exactBlocks(path: readonly Block[], chunk: number): number {
    const inexact = path.findIndex((block) => !block.exact)
    const blocks = inexact < 0 ? path.length : inexact
    const perChunk = chunk / blockTokens
    return Math.floor(blocks / perChunk) * perChunk
  }

  /** Takes over the beginning of a sequence; answers how many tokens of its marked prefix lie in the cache now. */
  keep(
    owner: string,
    cache: KvCache,
    { ids, tokens, exactTokens, breakpoints }: KeptSequence,
  ): number {
    const path = this.path(owner, ids, tokens)
    this.touch(owner, path)
    for (const [index, block] of path.entries())
      if (!block.exact && (index + 1) * blockTokens <= exactTokens)
        this.refresh(block, cache, index * blockTokens)
    for (let at = path.length * blockTokens; at + blockTokens <= tokens; at += blockTokens) {
      const siblings = this.childrenOf(owner, path)
      const block = this.add(owner, path, cache, {
        ids,
        from: at,
        to: at + blockTokens,
        exact: at + blockTokens <= exactTokens,
      })
      if (!block) break
      path.push(block)
      this.dropBeginnings(siblings, block)
    }
    this.keepEnd(owner, path, cache, ids, tokens)
    const ends = breakpoints.filter((mark) => mark <= tokens)
    const markedTokens = this.mark(owner, path, cache, ids, ends)
    this.touch(owner, path)
    return markedTokens
  }

  /** What is left behind whole blocks, unless it lies in another block already: so that the same text can be taken up at its very end. */
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
    this.add(owner, path, cache, { ids, from, to: tokens, exact: false })
  }

  /** Ends of texts that lie in a block are not needed beside it. */
  private dropBeginnings(siblings: ReadonlyMap<string, Block> | undefined, block: Block): void {
    for (const other of [...(siblings?.values() ?? [])])
      if (
        other.tokens < blockTokens &&
        !other.marked &&
        sameFrom(other, block.ids, 0, blockTokens) === other.tokens
      )
        this.drop(other)
  }

  private refresh(block: Block, cache: KvCache, from: number): void {
    cache.bank.read(cache.row, from, block.tokens, block.data)
    block.exact = true
  }

  /** Marks the blocks up to the last mark, and keeps what is left behind whole blocks in short ones. */
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
      const known = this.childrenOf(owner, before)?.get(keyOf(ids, from, end))
      const short = known ?? this.add(owner, before, cache, { ids, from, to: end, exact: false })
      if (!short) continue
      short.marked = true
      if (end === ends.at(-1)) markedTokens = end
    }
    return markedTokens
  }

  private childrenOf(owner: string, path: readonly Block[]): Map<string, Block> | undefined {
    return path.length ? path.at(-1)!.children : this.roots.get(owner)
  }

  private add(
    owner: string,
    path: readonly Block[],
    cache: KvCache,
    {
      ids,
      from,
      to,
      exact,
    }: {
      readonly ids: ArrayLike<number>
      readonly from: number
      readonly to: number
      readonly exact: boolean
    },
  ): Block | undefined {
    const data = this.allocate(to - from, path)
    if (!data) return undefined
    cache.bank.read(cache.row, from, to - from, data)
    const parent = path.at(-1)
    const own = Array.from({ length: to - from }, (_, i) => ids[from + i]!)
    const block: Block = {
      parent,
      key: keyOf(ids, from, to),
      ids: own,
      tokens: to - from,
      children: new Map(),
      data,
      marked: false,
      exact,
    }
    const siblings = this.childrenOf(owner, path) ?? new Map<string, Block>()
    if (!parent) this.roots.set(owner, siblings)
    siblings.set(block.key, block)
    this.byAge.set(block, owner)
    return block
  }

  /** A buffer for so many tokens, after dropping the oldest blocks; undefined when only blocks of the path itself are left. */
  private allocate(tokens: number, path: readonly Block[]): Float32Array | undefined {
    const floats = tokens * this.tokenFloats
    while (this.bytes + floats * 4 > this.maxBytes) {
      const oldest = this.byAge.keys().next().value
      if (!oldest || path.includes(oldest)) return undefined
      this.drop(oldest)
    }
    this.bytes += floats * 4
    return (tokens === blockTokens && this.spare.pop()) || new Float32Array(floats)
  }

  private drop(block: Block): void {
    const owner = this.byAge.get(block)!
    const siblings = block.parent?.children ?? this.roots.get(owner)!
    siblings.delete(block.key)
    if (!block.parent && !siblings.size) this.roots.delete(owner)
    this.byAge.delete(block)
    this.bytes -= block.data.byteLength
    if (block.tokens === blockTokens && this.spare.length < 8) this.spare.push(block.data)
  }
}
