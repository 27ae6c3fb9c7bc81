/** Floats, or halves (IEEE 754 binary16) as their bits. */
export type KvNumbers = Float32Array | Uint16Array

/** `halves`: as their bits. */
export const zeros = (halves: boolean, length: number): KvNumbers =>
  halves ? new Uint16Array(length) : new Float32Array(length)

/** Tokens of a whole block. */
export const blockTokens = 16

/**
 * Memory that V8 does not count: a long prompt fills so much that it would collect garbage each time, on
 * a core of the next step. For arrays that are used again and again, as V8 is in no hurry to free them.
 */
export const uncounted = (halves: boolean, length: number): KvNumbers =>
  halves
    ? new Uint16Array(new SharedArrayBuffer(2 * length))
    : new Float32Array(new SharedArrayBuffer(4 * length))

export interface KvShape {
  readonly layers: number
  readonly kvHeads: number
  readonly headSize: number
}

/**
 * Position of a row's new keys and values in the output of a forward pass, `[2*layers*rows, count,
 * kvHeads*headSize]`, and how many of its tokens to keep.
 */
export interface FreshRow {
  readonly rows: number
  readonly index: number
  readonly count: number
  readonly keep: number
}

/** Keys and values of a few tokens, outside of any row. */
export interface KvBlock {
  /** Its numbers never arrived, as the device had no memory for them. */
  readonly isLost: boolean
  /** Gives the memory back; the block must not be used any more. */
  release(): void
}

/** Rows of a store, for sessions that read it themselves. */
export interface StoredRows {
  readonly store: KvStore
  readonly first: number
  readonly count: number
}

/**
 * Keys and values of several sequences, a row each, wherever they are. Only stores and blocks of
 * one decoder are used with each other.
 */
export interface KvStore {
  readonly shape: KvShape
  readonly rows: number
  /** Tokens of each row. */
  readonly capacity: number
  /** Returns an empty one, in the same place. */
  another(rows: number, capacity: number): KvStore
  /** Returns some rows for a pass, without copying. */
  rowsFrom(
    first: number,
    count: number,
  ): { readonly past: readonly Float32Array[]; readonly stored: StoredRows }
  /** Copies the first `tokens` tokens from a row of any store. */
  copyRow(row: number, from: KvStore, fromRow: number, tokens: number): void
  /** Copies `count` tokens from `first` on; `into`: a block of as many that is not used any more. */
  read(row: number, first: number, count: number, into?: KvBlock): KvBlock
  /** Copies back the first `count` tokens of what `read` copied out. */
  restore(row: number, first: number, count: number, from: KvBlock): void
  /**
   * Appends the new keys and values of one row that a pass returned, if it has not written them
   * itself. Returns false when a number is not finite, and clears such a row, as NaN would reach other
   * rows of a pass even where it is masked.
   */
  write(row: number, first: number, fresh: KvNumbers, at: FreshRow): boolean
  /** Makes all numbers of a row finite. */
  clear(row: number): void
  /** Gives the memory back; the store must not be used any more. */
  release(): void
}
