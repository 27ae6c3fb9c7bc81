import { Effect } from "effect"
import {
  type AdmitRequest,
  type Log,
  lesser,
  type PortError,
  type Transaction,
} from "../../core/index.ts"
import { BriefMap } from "./brief-map.ts"
import { type LedgerSettlement, type RequestRow, toRequest } from "./statement-values.ts"
import type { Statements } from "./statements.ts"

export interface LostHolds {
  /** A call was admitted. */
  admitted(request: AdmitRequest): void
  /** The account of a call that was admitted here and holds money. */
  accountOf(id: string): string | undefined
  /** Adds what was admitted, so that another process can charge it after the database forgot the call. */
  remembered(item: LedgerSettlement): LedgerSettlement
  /** Settles; calls that the ledger does not know any more are admitted again, and charged. */
  settle(
    items: readonly LedgerSettlement[],
    nowMs: number,
    tx?: Transaction,
  ): Effect.Effect<void, PortError>
}

const maxRemembered = 20_000
const unlimited = 2 ** 31 - 1

/** Limits were checked when the call was admitted; only the balance is checked again. */
const unchecked = { rpm: unlimited, rpd: unlimited, slots: unlimited, cap_micros: "0" }

/** No more than it costs is held now. */
const lesserOf = (holdMicros: string, costMicros: bigint): string =>
  String(lesser(BigInt(holdMicros), costMicros))

const withoutSpare = ({ spare: _, ...item }: LedgerSettlement): LedgerSettlement => item

/**
 * Holds are written without waiting for the disk, so that a crash of the database server may forget
 * the calls of its last moments. States of one: open -> settled; open -> forgotten by the ledger ->
 * admitted again -> settled. Beyond `maxRemembered` the oldest is dropped.
 */
export const makeLostHolds = (statements: Statements, replica: string, log: Log): LostHolds => {
  const open = new BriefMap<string, AdmitRequest>()
  const remembered = (item: LedgerSettlement): LedgerSettlement => {
    const isFree = item.outcome !== "settled" || item.costMicros === 0n
    const request = isFree || item.spare ? undefined : open.get(item.id)
    if (!request) return item
    return { ...item, account: request.caller.tenant.account, request: toRequest(request, 0) }
  }
  const readmission = (item: LedgerSettlement): readonly RequestRow[] => {
    const { costMicros, spare, request } = remembered(item)
    const row = spare?.request ?? request
    return row ? [{ ...row, ...unchecked, hold_micros: lesserOf(row.hold_micros, costMicros) }] : []
  }

  const restore = Effect.fnUntraced(function* (
    items: readonly LedgerSettlement[],
    nowMs: number,
    tx?: Transaction,
  ) {
    const missing = new Set(
      yield* statements.missing(
        items.map(({ id }) => id),
        tx,
      ),
    )
    const requests = items.flatMap((item) => (missing.has(item.id) ? readmission(item) : []))
    const restored = new Set<string>()
    if (requests.length > 0) {
      for (const id of yield* statements.readmit(requests, replica, nowMs, tx)) restored.add(id)
      log.warn(
        "ledger.holds_restored",
        "the database had lost calls in a crash; they were admitted again",
        { calls: requests.length, restored: restored.size },
      )
    }
    // a call of the second kind may have been restored before, and not settled
    const known = items.filter(({ id, spare }) => restored.has(id) || (spare && !missing.has(id)))
    yield* statements.settle(known.map(withoutSpare), nowMs, tx)
  })

  const settle: LostHolds["settle"] = Effect.fnUntraced(function* (items, nowMs, tx) {
    const closed = yield* statements.settle(items, nowMs, tx)
    const charged = items.filter(
      ({ id, outcome, costMicros, spare, request }) =>
        outcome === "settled" && costMicros > 0n && (spare || request || open.has(id)),
    )
    if (closed < items.length && charged.length > 0) yield* restore(charged, nowMs, tx)
    for (const { id } of items) open.delete(id)
  })

  return {
    admitted: (request) => {
      if (request.holdMicros === 0n || !["all", "money"].includes(request.counts)) return
      open.set(request.id, request)
      const oldest = open.oldestKey()
      if (open.size > maxRemembered && oldest !== undefined) open.delete(oldest)
    },
    accountOf: (id) => open.get(id)?.caller.tenant.account,
    remembered,
    settle,
  }
}
