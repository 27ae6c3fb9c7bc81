import { roundedCapacity } from "../sessions/kv-bank.ts"
import type { KvCache } from "./kv-cache.ts"

/** A sequence that is being decoded. */
export interface DecodeRow {
  readonly cache: KvCache
  /** Its keys and values are not needed any more. */
  readonly ended: boolean
}

/**
 * All rows of a forward pass are padded to the longest, so sequences of very different lengths go
 * into passes of their own. One more pass costs about as much
 * as attending to this many cached tokens (measured on SmolLM2-135M, two threads: 9 ms against 4 us
 * a token).
 */
const stepCostTokens = 2_048

const neededCapacity = (rows: readonly DecodeRow[]): number =>
  roundedCapacity(Math.max(...rows.map((row) => row.cache.length)) + 1)

const costOf = (groups: readonly (readonly DecodeRow[])[]): number =>
  groups.reduce((sum, rows) => sum + stepCostTokens + rows.length * neededCapacity(rows), 0)

/** Whether a bank of so many tokens may be made; one of a single row always. */
const fits = (rows: number, capacity: number, mostTokens: number): boolean =>
  rows === 1 || rows * capacity <= mostTokens

/**
 * The cheapest partition of the rows, sorted by length, into groups of at most `mostTokens` (dynamic
 * programming over the cut positions).
 */
export const cheapestGroups = <Row extends DecodeRow>(
  rows: readonly Row[],
  mostTokens = Number.POSITIVE_INFINITY,
): readonly Row[][] => {
  const sorted = [...rows].sort((a, b) => a.cache.length - b.cache.length)
  const best: { readonly cost: number; readonly from: number }[] = [{ cost: 0, from: 0 }]
  for (let end = 1; end <= sorted.length; end++) {
    const capacity = neededCapacity([sorted[end - 1]!])
    let choice = { cost: Number.POSITIVE_INFINITY, from: 0 }
    for (let from = 0; from < end; from++) {
      if (!fits(end - from, capacity, mostTokens)) continue
      const cost = best[from]!.cost + stepCostTokens + (end - from) * capacity
      if (cost < choice.cost) choice = { cost, from }
    }
    best.push(choice)
  }
  const groups: Row[][] = []
  for (let end = sorted.length; end > 0; end = best[end]!.from)
    groups.unshift(sorted.slice(best[end]!.from, end))
  return groups
}

const isFull = (rows: readonly DecodeRow[]): boolean =>
  neededCapacity(rows) > rows[0]!.cache.capacity

/**
 * Keeps sequences that are decoded together in consecutive rows of a bank (continuous batching);
 * moves them only when that pays.
 */
export class DecodeBanks<Row extends DecodeRow> {
  /** Row i of a group is row i of its bank. */
  private groups: Row[][] = []
  /** The most tokens of all rows of a bank. */
  private readonly mostTokens: number

  constructor(mostTokens = Number.POSITIVE_INFINITY) {
    this.mostTokens = mostTokens
  }

  /**
   * Returns the rows of the next step in groups, each in one bank with capacity for one more token
   * per row.
   */
  arrange(rows: readonly Row[]): readonly (readonly Row[])[] {
    const left = this.dropAbsent(new Set(rows))
    const known = new Set(this.groups.flat())
    const newcomers = rows.filter((row) => !known.has(row))
    for (const row of newcomers) this.groups.push([row])
    if (!left && !newcomers.length && !this.groups.some(isFull)) return this.groups
    const cheapest = cheapestGroups(rows, this.mostTokens)
    const outgrows = (group: readonly Row[]) =>
      isFull(group) && !fits(group.length, neededCapacity(group), this.mostTokens)
    // saving less than a tenth does not pay for moving
    if (costOf(cheapest) < costOf(this.groups) * 0.9 || this.groups.some(outgrows))
      this.groups = cheapest.map((wanted) => this.gather(wanted))
    else for (const group of this.groups) if (isFull(group)) this.moveToNewBank(group)
    return this.groups
  }

  /** Forgets the rows where all have ended: their store would stay in memory until the next step. */
  dropEnded(): void {
    if (this.groups.every((group) => group.every(({ ended }) => ended))) this.groups = []
  }

  private moveToNewBank(rows: readonly Row[]): void {
    const capacity = neededCapacity(rows)
    // spare rows, so that one more sequence joins without moving the others
    const count = rows.length > 1 ? Math.ceil(rows.length / 4) * 4 : 1
    const most = Math.max(rows.length, Math.floor(this.mostTokens / capacity))
    const bank = rows[0]!.cache.bank.another(Math.min(count, most), capacity)
    for (const [index, row] of rows.entries()) row.cache.moveTo(bank, index)
  }

  /** Removes rows that are not decoded now. Returns whether there were any. */
  private dropAbsent(present: ReadonlySet<Row>): boolean {
    let left = false
    for (const group of this.groups)
      for (let index = group.length - 1; index >= 0; index--) {
        const row = group[index]!
        if (present.has(row)) continue
        left = true
        const last = group.pop()!
        // a paused row takes its keys and values along
        if (!row.ended)
          row.cache.moveTo(row.cache.bank.another(1, roundedCapacity(row.cache.length)), 0)
        if (last === row) continue
        last.cache.moveTo(last.cache.bank, index)
        group[index] = last
      }
    this.groups = this.groups.filter((group) => group.length > 0)
    return left
  }

  /** Moves the wanted rows into one bank: an existing one where they fit, otherwise a new one. */
  private gather(wanted: readonly Row[]): Row[] {
    const inside = this.groups
      .filter((group) => group.every((row) => wanted.includes(row)))
      .sort((a, b) => b.length - a.length)
    const capacity = neededCapacity(wanted)
    const base = inside.find((group) => {
      const { bank } = group[0]!.cache
      return (
        bank.rows >= wanted.length && bank.capacity >= capacity && bank.capacity <= capacity * 1.25
      )
    })
    if (!base) {
      this.moveToNewBank(wanted)
      return [...wanted]
    }
    const rows = [...base]
    for (const row of wanted)
      if (!base.includes(row)) {
        row.cache.moveTo(base[0]!.cache.bank, rows.length)
        rows.push(row)
      }
    return rows
  }
}
