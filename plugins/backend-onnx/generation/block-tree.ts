import { blockTokens, type KvBlock } from "../sessions/kv-store.ts"
import type { KvCache } from "./kv-cache.ts"

/**
 * Keys and values of up to 16 tokens that follow those of the parent. Shorter blocks end a prefix
 * with a cache breakpoint, or a sequence.
 */
export interface Block {
  readonly parent: Block | undefined
  readonly key: string
  readonly ids: readonly number[]
  readonly tokens: number
  readonly children: Map<string, Block>
  readonly data: KvBlock
  /** A `cache_control` marker covers it, so reading it is counted in the usage. */
  marked: boolean
}

/** Tokens `from` to `to` of a sequence, whose keys and values become a block. */
export interface NewBlock {
  readonly ids: ArrayLike<number>
  readonly from: number
  readonly to: number
}

/** Short blocks take the room of whole ones, whose memory then waits for longer. */
const mostSpare = 16

/**
 * The number of tokens of a block, at most up to `most`, that are those of the sequence from `at`
 * on.
 */
export const matchingTokens = (
  block: Block,
  ids: ArrayLike<number>,
  at: number,
  most: number,
): number => {
  const end = Math.min(block.tokens, most - at)
  let same = 0
  while (same < end && block.ids[same] === ids[at + same]) same++
  return same
}

export const blockKey = (ids: ArrayLike<number>, from: number, to: number): string => {
  let key = ""
  for (let i = from; i < to; i++) key += `${ids[i]},`
  return key
}

/**
 * Blocks of keys and values, one tree for each owner, bounded in bytes: the least recently used
 * block is evicted first.
 * Blocks that are used together are touched from the last to the first, so the oldest block never
 * has children.
 */
export class BlockTree {
  private readonly maxBytes: number
  private readonly roots = new Map<string, Map<string, Block>>()
  /** Oldest first, with the owner. */
  private readonly byAge = new Map<Block, string>()
  /** The memory of whole blocks that were dropped, for the next ones. */
  private readonly spare: KvBlock[] = []
  private readonly tokenBytes: number
  bytes = 0

  /** `tokenBytes`: size of the keys and values of one token. */
  constructor(maxBytes: number, tokenBytes: number) {
    this.maxBytes = maxBytes
    this.tokenBytes = tokenBytes
  }

  /** The whole blocks that match the sequence from its beginning, up to `most` tokens. */
  path(owner: string, ids: ArrayLike<number>, most: number): Block[] {
    const path: Block[] = []
    let children = this.roots.get(owner)
    for (let at = 0; children && at + blockTokens <= most; at += blockTokens) {
      const block = children.get(blockKey(ids, at, at + blockTokens))
      if (block?.data.isLost) this.drop(block)
      if (!block || block.data.isLost) break
      path.push(block)
      children = block.children
    }
    return path
  }

  childrenOf(owner: string, path: readonly Block[]): Map<string, Block> | undefined {
    return path.length ? path.at(-1)!.children : this.roots.get(owner)
  }

  /** Makes the blocks of a path, none of which was dropped, the most recently used. */
  touch(owner: string, path: readonly Block[]): void {
    for (const block of [...path].reverse()) {
      this.byAge.delete(block)
      this.byAge.set(block, owner)
    }
  }

  /**
   * Copies tokens out of a cache into a new block behind the path; undefined when there is no
   * memory for it. Blocks of `kept` are not evicted for it.
   */
  add(
    owner: string,
    path: readonly Block[],
    cache: KvCache,
    { ids, from, to }: NewBlock,
    kept = path,
  ): Block | undefined {
    const bytes = (to - from) * this.tokenBytes
    if (!this.makeRoom(bytes, kept)) return undefined
    const spare = to - from === blockTokens ? this.spare.pop() : undefined
    const data = cache.bank.read(cache.row, from, to - from, spare)
    const parent = path.at(-1)
    const own = Array.from({ length: to - from }, (_, i) => ids[from + i]!)
    const block: Block = {
      parent,
      key: blockKey(ids, from, to),
      ids: own,
      tokens: to - from,
      children: new Map(),
      data,
      marked: false,
    }
    const siblings = this.childrenOf(owner, path) ?? new Map<string, Block>()
    if (!parent) this.roots.set(owner, siblings)
    siblings.set(block.key, block)
    this.byAge.set(block, owner)
    this.bytes += bytes
    return block
  }

  /**
   * Evicts the oldest blocks until there is room. Returns false when the oldest is one of `kept`.
   */
  private makeRoom(bytes: number, kept: readonly Block[]): boolean {
    while (this.bytes + bytes > this.maxBytes) {
      const oldest = this.byAge.keys().next().value
      if (!oldest || kept.includes(oldest)) return false
      this.drop(oldest)
    }
    return true
  }

  drop(block: Block): void {
    const owner = this.byAge.get(block)!
    const siblings = block.parent?.children ?? this.roots.get(owner)!
    siblings.delete(block.key)
    if (!block.parent && !siblings.size) this.roots.delete(owner)
    this.byAge.delete(block)
    this.bytes -= block.tokens * this.tokenBytes
    const isReusable = block.tokens === blockTokens && !block.data.isLost
    if (isReusable && this.spare.length < mostSpare) this.spare.push(block.data)
    else block.data.release()
  }
}
