import type { AdapterChoice } from "../sessions/decoder.ts"
import { roundedCapacity } from "../sessions/kv-bank.ts"
import type { KvNumbers, KvStore } from "../sessions/kv-store.ts"
import type { TokenPlaces } from "../sessions/token-places.ts"

/** How many caches have a row in each store: the last one that leaves gives its memory back. */
const users = new WeakMap<KvStore, number>()

const join = (store: KvStore): KvStore => {
  users.set(store, (users.get(store) ?? 0) + 1)
  return store
}

const leave = (store: KvStore): void => {
  const left = users.get(store)! - 1
  users.set(store, left)
  if (left === 0) store.release()
}

/** Keys and values of one sequence: a row of a bank, at first of a bank of its own. */
export class KvCache {
  bank: KvStore
  row = 0
  /** The number of cached tokens. */
  length = 0
  /** The LoRA that keys and values are computed with. */
  readonly adapter: AdapterChoice | undefined
  /** The sequence may get longer than the model's `longAfter`: it is rotated in another way. */
  readonly isLong: boolean
  /** The places of its tokens, where it has images that stand in a grid. */
  readonly places: TokenPlaces | undefined

  /** `bank`: an empty one of a single row. */
  constructor(
    bank: KvStore,
    {
      adapter,
      isLong = false,
      places,
    }: {
      readonly adapter?: AdapterChoice
      readonly isLong?: boolean
      readonly places?: TokenPlaces
    } = {},
  ) {
    this.places = places
    this.adapter = adapter
    this.isLong = isLong
    this.bank = join(bank)
  }

  /** Capacity in tokens of every row of the bank. */
  get capacity(): number {
    return this.bank.capacity
  }

  /**
   * Ensures capacity for `more` tokens, by moving into a larger bank of its own where the present
   * one is full.
   */
  reserve(more: number): void {
    if (this.length + more <= this.capacity) return
    this.moveTo(this.bank.another(1, roundedCapacity(this.length + more)), 0)
  }

  moveTo(bank: KvStore, row: number): void {
    bank.copyRow(row, this.bank, this.row, this.length)
    const before = this.bank
    this.bank = join(bank)
    this.row = row
    leave(before)
  }

  /** Gives its row up if the work throws. */
  orRelease<A>(work: () => A): A {
    try {
      return work()
    } catch (cause) {
      this.release()
      throw cause
    }
  }

  /** Gives its row up: the cache must not be used any more. */
  release(): void {
    leave(this.bank)
  }

  /** Takes over the tokens of another cache, in place of its own. */
  copyFrom(other: KvCache): void {
    this.length = 0
    this.reserve(other.length)
    this.bank.copyRow(this.row, other.bank, other.row, other.length)
    this.length = other.length
  }

  /** Forgets all but the first `length` tokens. */
  rewind(length: number): void {
    this.length = Math.min(this.length, length)
  }

  /**
   * Appends the first `keep` of `count` tokens from the output of a pass over `rows` rows, of which
   * this is number `index`. Returns false when a number is not finite: the cache is empty then.
   */
  append(fresh: KvNumbers, count: number, keep = count, rows = 1, index = 0): boolean {
    const isSound = this.bank.write(this.row, this.length, fresh, { rows, index, count, keep })
    this.length = isSound ? this.length + keep : 0
    return isSound
  }

  /** Empties it: what is no number would reach the sequences beside it. */
  clear(): void {
    this.bank.clear(this.row)
    this.length = 0
  }
}
