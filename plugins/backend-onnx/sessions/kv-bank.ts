import { constants } from "node:buffer"
import type { DecoderSession } from "./decoder.ts"
import { KvMemory } from "./kv-memory.ts"
import {
  blockTokens,
  type FreshRow,
  type KvBlock,
  type KvNumbers,
  type KvShape,
  type KvStore,
  type StoredRows,
  uncounted,
  zeros,
} from "./kv-store.ts"

/**
 * The capacity for a number of tokens: multiples of 128, and of larger powers of two for long
 * sequences, so that growing copies little.
 */
export const roundedCapacity = (tokens: number): number => {
  let step = 128
  while (tokens > step * 8) step *= 2
  return Math.ceil(Math.max(1, tokens) / step) * step
}

/** Bytes of the keys and values of one token, in float32 or in numbers of so many bytes. */
export const kvTokenBytes = ({ layers, kvHeads, headSize }: KvShape, numberBytes = 4): number =>
  2 * layers * kvHeads * headSize * numberBytes

/**
 * The most tokens of all rows of a bank: Node 20 has no array of more than 2^32 numbers. Joined
 * layers as of `KvBank`.
 */
export const mostBankTokens = (
  { kvHeads, headSize }: KvShape,
  joinedLayers: readonly number[] = [],
): number => {
  const parts = Math.max(1, ...joinedLayers.map((layers) => 2 * layers))
  return Math.floor(constants.MAX_LENGTH / (parts * kvHeads * headSize))
}

/** The model's window, limited by the memory for keys and values, and by the tokens of a row. */
export const windowWithin = (
  shape: KvShape & { contextTokens: number },
  kvBytes: number,
  mostTokens = Number.POSITIVE_INFINITY,
): number => {
  const most = Math.min(shape.contextTokens, Math.floor(kvBytes / kvTokenBytes(shape)))
  // capacities are rounded up by a quarter at most
  return roundedCapacity(most) > mostTokens ? Math.floor((mostTokens * 3) / 4) : most
}

// plain loops: two views for each of thousands of heads would take longer
/** Returns whether all are finite. */
const copyFloats = (
  to: Float32Array,
  at: number,
  from: Float32Array,
  start: number,
  count: number,
): boolean => {
  let check = 0
  for (let i = 0; i < count; i++) {
    const value = from[start + i]!
    // stays 0 unless a value is infinite or NaN
    check += value * 0
    to[at + i] = value
  }
  return check === 0
}

/** The same for halves, whose exponent is all ones where they are not finite. */
const copyHalves = (
  to: Uint16Array,
  at: number,
  from: Uint16Array,
  start: number,
  count: number,
): boolean => {
  let check = 0
  for (let i = 0; i < count; i++) {
    const value = from[start + i]!
    check |= (value & 0x7c00) + 0x400
    to[at + i] = value
  }
  return (check & 0x8000) === 0
}

/** `[2*layers, kvHeads, tokens, headSize]` */
export class HostBlock implements KvBlock {
  readonly data: KvNumbers
  readonly isLost = false

  constructor(data: KvNumbers) {
    this.data = data
  }

  release(): void {}
}

/**
 * Keys and values of several sequences in memory: for each layer two arrays `[rows, kvHeads, capacity,
 * headSize]`.
 */
export class KvBank implements KvStore {
  readonly shape: KvShape
  readonly rows: number
  readonly capacity: number
  /** Keys of layer 0, values of layer 0, keys of layer 1 ... */
  readonly arrays: readonly KvNumbers[]
  /** The same, where numbers are floats; else none. */
  private readonly floats: readonly Float32Array[]
  /** The arrays of some layers as one each, where numbers are halves; else none. */
  readonly joined: readonly Uint16Array[]
  private readonly joinedLayers: readonly number[] | undefined
  private readonly memory: KvMemory

  /** `joinedLayers`: numbers are halves, and the layers of each joined array. Absent: floats. */
  constructor(
    shape: KvShape,
    rows: number,
    capacity: number,
    joinedLayers?: readonly number[],
    memory = new KvMemory(joinedLayers !== undefined),
  ) {
    this.shape = shape
    this.rows = rows
    this.capacity = capacity
    this.joinedLayers = joinedLayers
    this.memory = memory
    const size = rows * shape.kvHeads * capacity * shape.headSize
    this.joined = (joinedLayers ?? []).map(
      (layers) => memory.take(2 * layers * size) as Uint16Array,
    )
    this.floats = Array.from(
      { length: joinedLayers ? 0 : 2 * shape.layers },
      () => memory.take(size) as Float32Array,
    )
    const halves = this.joined.flatMap((all) =>
      Array.from({ length: all.length / size }, (_, i) => all.subarray(i * size, (i + 1) * size)),
    )
    this.arrays = joinedLayers ? halves : this.floats
  }

  another(rows: number, capacity: number): KvBank {
    return new KvBank(this.shape, rows, capacity, this.joinedLayers, this.memory)
  }

  release(): void {
    this.memory.giveBack([...this.joined, ...this.floats])
  }

  rowsFrom(
    first: number,
    count: number,
  ): { readonly past: readonly Float32Array[]; readonly stored: StoredRows } {
    const stored = { store: this, first, count }
    if (this.rows === count) return { past: this.floats, stored }
    const [start, end] = [this.start(first, 0), this.start(first + count, 0)]
    return { past: this.floats.map((array) => array.subarray(start, end)), stored }
  }

  private start(row: number, head: number): number {
    return (row * this.shape.kvHeads + head) * this.capacity * this.shape.headSize
  }

  copyRow(row: number, from: KvBank, fromRow: number, tokens: number): void {
    const { kvHeads, headSize } = this.shape
    for (const [i, array] of this.arrays.entries())
      for (let head = 0; head < kvHeads; head++) {
        const start = from.start(fromRow, head)
        array.set(from.arrays[i]!.subarray(start, start + tokens * headSize), this.start(row, head))
      }
  }

  read(row: number, first: number, count: number, into?: KvBlock): KvBlock {
    const { kvHeads, headSize } = this.shape
    const size = count * headSize
    const numbers = this.arrays.length * kvHeads * size
    const block =
      into instanceof HostBlock
        ? into
        : new HostBlock(
            (count === blockTokens ? uncounted : zeros)(this.joinedLayers !== undefined, numbers),
          )
    let at = 0
    for (const array of this.arrays)
      for (let head = 0; head < kvHeads; head++, at += size) {
        const start = this.start(row, head) + first * headSize
        block.data.set(array.subarray(start, start + size), at)
      }
    return block
  }

  restore(row: number, first: number, count: number, { data }: HostBlock): void {
    const { kvHeads, headSize } = this.shape
    const [size, stride] = [count * headSize, data.length / (this.arrays.length * kvHeads)]
    let at = 0
    for (const array of this.arrays)
      for (let head = 0; head < kvHeads; head++, at += stride)
        array.set(data.subarray(at, at + size), this.start(row, head) + first * headSize)
  }

  write(
    row: number,
    first: number,
    fresh: KvNumbers,
    { rows, index, count, keep }: FreshRow,
  ): boolean {
    const { kvHeads, headSize } = this.shape
    const width = kvHeads * headSize
    let allFinite = true
    for (const [i, array] of this.arrays.entries()) {
      let from = (i * rows + index) * count * width
      for (let token = 0; token < keep; token++)
        for (let head = 0; head < kvHeads; head++, from += headSize) {
          const to = this.start(row, head) + (first + token) * headSize
          const isSound =
            fresh instanceof Uint16Array
              ? copyHalves(array as Uint16Array, to, fresh, from, headSize)
              : copyFloats(array as Float32Array, to, fresh, from, headSize)
          allFinite &&= isSound
        }
    }
    if (!allFinite) this.clear(row)
    return allFinite
  }

  clear(row: number): void {
    for (const array of this.arrays) array.fill(0, this.start(row, 0), this.start(row + 1, 0))
  }
}

/** Returns an empty store of one row for passes of this session. */
export const emptyStore = (session: DecoderSession, capacity: number): KvStore =>
  session.newStore?.(capacity) ?? new KvBank(session.shape, 1, capacity)
