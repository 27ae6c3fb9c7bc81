import { Effect } from "effect"
import type { Tenant } from "../../core/caller.ts"
import type { Json } from "../../core/json.ts"
import type { Idempotency, IdempotencyState, StoredReply } from "../../core/ports/idempotency.ts"
import type { Clock } from "../../core/services/clock.ts"

const leaseMs = 15_000
const keepMs = 24 * 60 * 60_000

interface Row {
  readonly fingerprint: string
  readonly attempt: object
  readonly endsMs: number
  readonly reply?: Omit<StoredReply, "json"> & { readonly json: string }
}
export type FakeReplies = Map<string, Row>

/** Keeps replies in memory. Several instances over the same `rows` act as replicas. */
export const fakeIdempotency = (clock: Clock, rows: FakeReplies = new Map()): Idempotency => {
  const mine = new Map<string, object>()
  const idOf = (tenant: Tenant, key: string) => JSON.stringify([tenant.account, tenant.mode, key])
  const live = (id: string) => {
    const row = rows.get(id)
    return row && row.endsMs > clock.nowMs() ? row : undefined
  }
  const stateOf = (row: Row, fingerprint: string): IdempotencyState => {
    if (row.fingerprint !== fingerprint) return { state: "mismatch" }
    if (!row.reply) return { state: "running", leaseLeftMs: row.endsMs - clock.nowMs() }
    return { state: "done", reply: { ...row.reply, json: JSON.parse(row.reply.json) as Json } }
  }
  /** The row, if this attempt still holds it; each attempt ends once. */
  const ended = (id: string) => {
    const row = rows.get(id)
    const isMine = row !== undefined && row.attempt === mine.get(id) && !row.reply
    mine.delete(id)
    return isMine ? row : undefined
  }
  return {
    begin: (tenant, key, fingerprint) =>
      Effect.sync(() => {
        const id = idOf(tenant, key)
        const row = live(id)
        if (row) return stateOf(row, fingerprint)
        const attempt = {}
        mine.set(id, attempt)
        rows.set(id, { fingerprint, attempt, endsMs: clock.nowMs() + leaseMs })
        return { state: "new" }
      }),
    finish: (tenant, key, reply) =>
      Effect.sync(() => {
        const id = idOf(tenant, key)
        const row = ended(id)
        if (row)
          rows.set(id, {
            ...row,
            endsMs: clock.nowMs() + keepMs,
            reply: { ...reply, json: JSON.stringify(reply.json ?? null) },
          })
      }),
    forget: (tenant, key) =>
      Effect.sync(() => {
        const id = idOf(tenant, key)
        if (ended(id)) rows.delete(id)
      }),
  }
}
