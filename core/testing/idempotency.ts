import { Effect } from "effect"
import type { Tenant } from "../caller.ts"
import type { Json } from "../json.ts"
import type { Clock } from "../services/clock.ts"
import type { Idempotency, IdempotencyState } from "../services/idempotency.ts"

const leaseMs = 15 * 60_000
const keepMs = 24 * 60 * 60_000

interface Row {
  readonly fingerprint: string
  readonly endsMs: number
  readonly reply?: { readonly status: number; readonly json: string }
}

/** Keeps replies in memory. */
export const fakeIdempotency = (clock: Clock): Idempotency => {
  const rows = new Map<string, Row>()
  const idOf = (tenant: Tenant, key: string) => JSON.stringify([tenant.account, tenant.mode, key])
  const live = (id: string) => {
    const row = rows.get(id)
    return row && row.endsMs > clock.nowMs() ? row : undefined
  }
  const stateOf = (row: Row, fingerprint: string): IdempotencyState => {
    if (row.fingerprint !== fingerprint) return { state: "mismatch" }
    if (!row.reply) return { state: "running" }
    return { state: "done", reply: { status: row.reply.status, json: JSON.parse(row.reply.json) as Json } }
  }
  return {
    begin: (tenant, key, fingerprint) =>
      Effect.sync(() => {
        const id = idOf(tenant, key)
        const row = live(id)
        if (row) return stateOf(row, fingerprint)
        rows.set(id, { fingerprint, endsMs: clock.nowMs() + leaseMs })
        return { state: "new" }
      }),
    finish: (tenant, key, reply) =>
      Effect.sync(() => {
        const id = idOf(tenant, key)
        const row = rows.get(id)
        if (!row || row.reply) return
        rows.set(id, { ...row, endsMs: clock.nowMs() + keepMs, reply: { status: reply.status, json: JSON.stringify(reply.json ?? null) } })
      }),
    forget: (tenant, key) =>
      Effect.sync(() => {
        const id = idOf(tenant, key)
        if (!rows.get(id)?.reply) rows.delete(id)
      }),
  }
}
