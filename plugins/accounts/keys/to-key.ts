import { type Limits, type Micros, rupiahNumber } from "../../../core/index.ts"
import type { KeyRow } from "./key-store.ts"
import type { KeyReply } from "./wire.ts"

const seconds = (at: Date): number => Math.floor(at.getTime() / 1000)
export const secondsOrNull = (at: Date | null): number | null => (at === null ? null : seconds(at))

export const limitsJson = (limits: Limits) => ({
  rpm: limits.rpm,
  rpd: limits.rpd,
  concurrency: limits.concurrency,
  monthly_cap_idr: rupiahNumber(limits.monthlyCapMicros),
  body_mb: limits.bodyMb,
})

export const limitsOfRow = (row: KeyRow): Limits => ({
  rpm: row.rpm,
  rpd: row.rpd,
  concurrency: row.concurrency,
  monthlyCapMicros: BigInt(row.monthly_cap_micros),
  bodyMb: row.body_mb,
})

/** The JSON of a key, as its owner sees it. */
export const toKey = (row: KeyRow, spentMicros: Micros): KeyReply => ({
  id: row.id,
  object: "api_key",
  name: row.name,
  prefix: row.prefix,
  test: row.mode === "test",
  scopes: row.scopes,
  limits: limitsJson(limitsOfRow(row)),
  spent_this_month_idr: rupiahNumber(spentMicros),
  created_at: seconds(row.created_at),
  last_used_at: secondsOrNull(row.last_used_at),
  revoked_at: secondsOrNull(row.revoked_at),
  expires_at: secondsOrNull(row.expires_at),
  models: row.models,
})
