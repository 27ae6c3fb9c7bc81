import { Effect } from "effect"
import type { AdmitRequest, Log, PortError, Settlement, Transaction } from "../../core/index.ts"
import type { Statements } from "./statements.ts"

export interface LostHolds {
  /** A call was admitted. */
  admitted(request: AdmitRequest): void
  /** The account of a call that was admitted here and holds money. */
  accountOf(id: string): string | undefined
  /** Settles; calls that the ledger does not know any more are admitted again, and charged. */
  settle(
    items: readonly Settlement[],
    nowMs: number,
    tx?: Transaction,
  ): Effect.Effect<void, PortError>
}

const maxRemembered = 20_000
const unlimited = 2 ** 31 - 1

/** Its limits were checked when it was admitted; only the balance is checked again. */
const unchecked = (request: AdmitRequest): AdmitRequest => ({
  ...request,
  caller: {
    ...request.caller,
    limits: {
      ...request.caller.limits,
      rpm: unlimited,
      rpd: unlimited,
      concurrency: unlimited,
      monthlyCapMicros: 0n,
    },
  },
})

/**
 * Holds are written without waiting for the disk, so that a crash of the database server may forget
 * the calls of its last moments. States of one: open -> settled; open -> forgotten by the ledger ->
 * admitted again -> settled. Beyond `maxRemembered` the oldest is dropped.
 */
export const makeLostHolds = (statements: Statements, replica: string, log: Log): LostHolds => {
  const open = new Map<string, AdmitRequest>()

  const restore = Effect.fnUntraced(function* (
    items: readonly Settlement[],
    nowMs: number,
    tx?: Transaction,
  ) {
    const missing = yield* statements.missing(
      items.map(({ id }) => id),
      tx,
    )
    const requests = missing.flatMap((id) => open.get(id) ?? []).map(unchecked)
    if (requests.length === 0) return
    const verdicts = yield* statements.admit(requests, replica, nowMs, tx)
    const restored = new Set(
      requests.filter((_, index) => !verdicts[index]?.refused).map(({ id }) => id),
    )
    log.warn(
      "ledger.holds_restored",
      "the database had lost calls in a crash; they were admitted again",
      { calls: requests.length, restored: restored.size },
    )
    const settled = items.filter(({ id }) => restored.has(id))
    yield* statements.settle(settled, nowMs, tx)
  })

  const settle: LostHolds["settle"] = Effect.fnUntraced(function* (items, nowMs, tx) {
    const closed = yield* statements.settle(items, nowMs, tx)
    const charged = items.filter(
      ({ id, outcome, costMicros }) => outcome === "settled" && costMicros > 0n && open.has(id),
    )
    if (closed < items.length && charged.length > 0) yield* restore(charged, nowMs, tx)
    for (const { id } of items) open.delete(id)
  })

  return {
    admitted: (request) => {
      if (request.holdMicros === 0n || !["all", "money"].includes(request.counts)) return
      open.set(request.id, request)
      const [oldest] = open.keys()
      if (open.size > maxRemembered && oldest !== undefined) open.delete(oldest)
    },
    accountOf: (id) => open.get(id)?.caller.tenant.account,
    settle,
  }
}
