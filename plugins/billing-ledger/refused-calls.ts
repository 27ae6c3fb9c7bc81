import { Effect } from "effect"
import { sql } from "kysely"
import {
  type AdmitRequest,
  type Clock,
  type Database,
  type PortError,
  type Refusal,
  type RefusedRequest,
  statusOf,
} from "../../core/index.ts"
import { storable } from "./statement-values.ts"

/** A request that was refused, before it was a call or by its limits. */
export interface RefusedCall {
  readonly account: string
  readonly keyId: string
  readonly mode: "live" | "test"
  readonly requestId: string
  readonly endpoint: string
  readonly model: string | undefined
  readonly httpStatus: number
  readonly code: string
  readonly message: string
}

export interface RefusedCalls {
  /** Keeps it in memory, if the account has not had its share of these ten seconds. */
  note(call: RefusedCall): void
  /** In one statement; what can't be written is dropped, as the log need not be complete. */
  readonly flush: Effect.Effect<void, PortError>
  /** Deletes what is older than 30 days; returns the number of rows. */
  readonly sweep: Effect.Effect<number, PortError>
}

/**
 * Nonsense at full speed must not fill the disk. By time, and not until the next flush: who looks at
 * the log flushes.
 */
const mostOfAccount = 20
const shareMs = 10_000
/** Between two flushes. */
const mostWaiting = 2_000
const keepMs = 30 * 86_400_000
const rowsPerStatement = 2_000

const ofLimits: Readonly<Record<Refusal["reason"], readonly [string, number, string]>> = {
  rpm: ["rate_limit_error", 429, "The key's requests per minute were used up."],
  rpd: ["rate_limit_error", 429, "The key's requests of the day were used up."],
  concurrency: ["concurrency_exceeded", 429, "The key had as many calls in flight as it may have."],
  monthly_cap: ["insufficient_quota", 402, "The call could have gone over the key's monthly cap."],
  balance: ["insufficient_quota", 402, "The balance did not cover what the call could cost."],
}

const sourceOf = ({ caller, endpoint, requestId, model }: AdmitRequest | RefusedRequest) => ({
  account: caller.tenant.account,
  keyId: caller.keyId ?? `session:${caller.tenant.account}`,
  mode: caller.tenant.mode,
  requestId,
  endpoint,
  model,
})

/** A request that was refused before it was a call. */
export const refusedRequest = (request: RefusedRequest): RefusedCall => ({
  ...sourceOf(request),
  httpStatus: statusOf(request.error),
  code: request.error.code,
  message: request.error.message,
})

/** A call that a limit, or the balance, refused. */
export const refusedByLimit = (request: AdmitRequest, reason: Refusal["reason"]): RefusedCall => {
  const [code, httpStatus, message] = ofLimits[reason]
  return { ...sourceOf(request), httpStatus, code, message }
}

export const makeRefusedCalls = (database: Database, clock: Clock): RefusedCalls => {
  let waiting: object[] = []
  let ofAccount = new Map<string, number>()
  let sharedFromMs = Number.NEGATIVE_INFINITY
  return {
    note: (call) => {
      const nowMs = clock.nowMs()
      if (nowMs - sharedFromMs >= shareMs) {
        ofAccount = new Map()
        sharedFromMs = nowMs
      }
      const share = ofAccount.get(call.account) ?? 0
      if (share >= mostOfAccount || waiting.length >= mostWaiting) return
      ofAccount.set(call.account, share + 1)
      waiting.push({
        account_id: call.account,
        key_id: call.keyId,
        mode: call.mode,
        at: new Date(nowMs).toISOString(),
        request_id: call.requestId,
        endpoint: call.endpoint,
        model: call.model ?? null,
        http_status: call.httpStatus,
        code: call.code,
        message: storable(call.message),
      })
    },
    flush: Effect.suspend(() => {
      if (waiting.length === 0) return Effect.void
      const rows = JSON.stringify(waiting)
      waiting = []
      const columns = sql`account_id, key_id, mode, at, request_id, endpoint, model, http_status, code, message`
      return Effect.asVoid(
        database.run(() =>
          sql`
            INSERT INTO ledger_refused_call (${columns})
            SELECT ${columns} FROM json_populate_recordset(NULL::ledger_refused_call, ${rows}::json)`.execute(
            database.queries(),
          ),
        ),
      )
    }),
    sweep: Effect.gen(function* () {
      const before = new Date(clock.nowMs() - keepMs)
      const sweep = () =>
        sql`
          DELETE FROM ledger_refused_call WHERE seq IN
            (SELECT seq FROM ledger_refused_call WHERE at < ${before} LIMIT ${rowsPerStatement} FOR UPDATE SKIP LOCKED)`.execute(
          database.queries(),
        )
      let total = 0
      for (;;) {
        const { numAffectedRows } = yield* database.run(sweep)
        total += Number(numAffectedRows ?? 0n)
        if (Number(numAffectedRows ?? 0n) < rowsPerStatement) return total
      }
    }),
  }
}
