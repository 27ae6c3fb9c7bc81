import type {
  AdmitRequest,
  RateState,
  Refusal,
  Settlement,
  UsageByModel,
} from "../../core/index.ts"

const maxMessage = 300

/** Shortens a message; PostgreSQL's texts can't hold some characters. */
export const storable = (text: string): string =>
  text.slice(0, maxMessage).replace(/[\0\ud800-\udfff]/gu, "\ufffd")

const maxInt8 = 2n ** 63n - 1n
const maxInt4 = 2 ** 31 - 1

/** No balance covers an amount beyond bigint, so the largest bigint stands for it. */
const int8 = (amount: bigint): string => String(amount > maxInt8 ? maxInt8 : amount)
const count = (limit: number): number => Math.max(0, Math.min(maxInt4, Math.floor(limit)))

/** `spare`: a call that no request uses yet. */
export type LedgerRequest = Omit<AdmitRequest, "counts"> & {
  readonly counts: AdmitRequest["counts"] | "spare"
}

/** What is held for a request of this kind: test keys and dry runs hold nothing. */
export const heldFor = (
  { caller, counts }: Pick<LedgerRequest, "caller" | "counts">,
  holdMicros: bigint,
): string => (caller.tenant.mode === "live" && counts !== "rpm" ? int8(holdMicros) : "0")

/** An element of the array that `ledger_admit` takes (type `ledger_request`). */
export const toRequest = (
  {
    id,
    caller,
    endpoint,
    requestId,
    model,
    prices,
    expiresMs,
    holdMicros,
    parent,
    counts,
  }: LedgerRequest,
  place: number,
) => {
  const { tenant, keyId, limits } = caller
  return {
    place,
    id,
    account_id: tenant.account,
    // a dashboard session has no key: all sessions of an account share one set of limits
    key_id: keyId ?? `session:${tenant.account}`,
    mode: tenant.mode,
    counts,
    hold_micros: heldFor({ caller, counts }, holdMicros),
    endpoint,
    request_id: requestId,
    parent_id: parent ?? null,
    model: model ?? null,
    prices: prices ?? null,
    expires_at: expiresMs === undefined ? null : new Date(expiresMs).toISOString(),
    rpm: count(limits.rpm),
    rpd: count(limits.rpd),
    slots: count(limits.concurrency),
    cap_micros: int8(limits.monthlyCapMicros),
  }
}

export type RequestRow = ReturnType<typeof toRequest>

/** A settlement as it is kept, too: all of it but the cost can be written as JSON. */
export interface LedgerSettlement extends Settlement {
  /** Where it is not known by the call. */
  readonly account?: string
  /** What was admitted. Absent: it is in `spare`, or nothing is charged. */
  readonly request?: RequestRow
  /** The spare call that it used, and what would have been admitted without one. */
  readonly spare?: {
    readonly id: string
    readonly heldMicros: string
    readonly request: RequestRow
  }
}

/** Type `ledger_verdict`. */
export interface VerdictRow {
  readonly place: number
  readonly refusal: Refusal["reason"] | null
  readonly remaining: bigint
  readonly reset_ms: bigint
  readonly retry_after_ms: bigint
  readonly hold_us: bigint
}

export type AdmissionVerdict = {
  readonly rate: RateState
  readonly refused?: Pick<Refusal, "reason" | "retryAfterMs">
}

export const verdictOf = (
  row: VerdictRow,
  request: LedgerRequest | undefined,
): AdmissionVerdict => {
  const holds = row.refusal === null && request?.counts !== "peek"
  const rate: RateState = {
    limit: request?.caller.limits.rpm ?? 0,
    remaining: Number(row.remaining),
    resetMs: Number(row.reset_ms),
    ...(holds && { holdMs: Number(row.hold_us) / 1000 }),
  }
  return row.refusal === null
    ? { rate }
    : { rate, refused: { reason: row.refusal, retryAfterMs: Number(row.retry_after_ms) } }
}

/** Tokens of all models together, rounded up as they are priced. */
const tokensOf = (usage: UsageByModel, kind: "inputTokens" | "outputTokens"): number => {
  let sum = 0
  for (const used of Object.values(usage)) sum += Math.max(0, Math.ceil(used[kind])) || 0
  return Math.min(sum, Number.MAX_SAFE_INTEGER)
}

/** Splits a `Server-Timing`: what is counted from the request's begin is no stage. */
const timesOf = (timing: string) => {
  const stages: Record<string, number> = {}
  const whole: { total?: number; first_token?: number } = {}
  for (const part of timing.split(", ")) {
    const end = part.indexOf(";dur=")
    const name = part.slice(0, end)
    const ms = Number(part.slice(end + ";dur=".length))
    if (name === "total" || name === "first_token") whole[name] = ms
    else stages[name] = ms
  }
  return { stages, total_ms: whole.total, first_ms: whole.first_token }
}

/**
 * An element of the array that `ledger_settle` takes (type `ledger_settlement`). JSON leaves out what
 * is undefined; members that come by spreads would each make a hidden class.
 */
const toSettlement = ({
  id,
  outcome,
  costMicros,
  usage,
  httpStatus,
  evidence,
  timing,
  failure,
  spare,
}: LedgerSettlement) => {
  const times = timing === undefined ? undefined : timesOf(timing)
  const admitted = spare?.request
  return {
    id,
    outcome,
    cost_micros: int8(costMicros),
    usage,
    input_tokens: tokensOf(usage, "inputTokens"),
    output_tokens: tokensOf(usage, "outputTokens"),
    http_status: httpStatus,
    evidence,
    stages: times?.stages,
    total_ms: times?.total_ms,
    first_ms: times?.first_ms,
    error_code: failure?.code,
    error_message: failure && storable(failure.message),
    spare_id: spare?.id,
    spare_micros: spare?.heldMicros,
    hold_micros: admitted?.hold_micros,
    endpoint: admitted?.endpoint,
    request_id: admitted?.request_id,
    model: admitted?.model,
    prices: admitted?.prices,
  }
}

/** The first settlement of each call: an id may occur once in a statement. */
export const toSettlements = (items: readonly LedgerSettlement[]) =>
  [...new Map([...items].reverse().map((item) => [item.id, item])).values()].map(toSettlement)
