import type { Effect } from "effect"
import type { Caller } from "../caller.ts"
import type { BalanceTooLow, PortError } from "../errors.ts"
import type { Micros } from "../money.ts"
import type { PriceTag } from "../pricing.ts"
import type { CallId, ModelId } from "../services/ids.ts"
import type { UsageByModel } from "../usage.ts"
import type { Transaction } from "./transaction.ts"

export interface AdmitRequest {
  readonly id: CallId
  readonly caller: Caller
  readonly endpoint: string
  readonly requestId: string
  /** The first of the models that it plans to use; what usage reports show. */
  readonly model?: ModelId | undefined
  /** The prices that stay with the call. */
  readonly prices?: PriceTag | undefined
  /** Unix ms; what is still open then is expired, whatever became of the call. */
  readonly expiresMs?: number | undefined
  /** The call's worst case. 0: nothing is held, and the call needs no settlement of money. */
  readonly holdMicros: Micros
  /** The batch that this line belongs to. */
  readonly parent?: string
  /**
   * `all`: a call, counts toward every limit and takes a concurrency slot. `rpm`: a dry run, counts toward RPM only and holds nothing.
   * `money`: a batch line, holds money and skips RPM, RPD and concurrency. `none`: only looks: the state of the minute, and whether cap and balance would cover the hold.
   */
  readonly counts: "all" | "rpm" | "money" | "peek"
}

/** The rolling minute, for `x-ratelimit-*`. */
export interface RateState {
  readonly limit: number
  readonly remaining: number
  /** Until the window is empty again. */
  readonly resetMs: number
  /** How much of the admission's time went into taking slot and hold. */
  readonly holdMs?: number
}

export interface Refusal {
  readonly _tag: "Refusal"
  /** In the order of checking. */
  readonly reason: "rpm" | "rpd" | "concurrency" | "monthly_cap" | "balance"
  readonly rate: RateState
  readonly retryAfterMs: number
}

export interface Settlement {
  readonly id: CallId
  /** `voided`: costs nothing, counts. `refused`: the backend was busy, so what admission counted is given back. */
  readonly outcome: "settled" | "voided" | "refused"
  /** Never more than the hold is taken. */
  readonly costMicros: Micros
  readonly usage: UsageByModel
  readonly httpStatus: number
}

/**
 * Limits and money. States of a call: open -> settled | voided | refused | expired (its replica died, or its time is over); expired -> settled (late).
 * `admit` checks and takes all of it in one step, so that parallel calls can't overdraw anything.
 */
export interface Billing {
  admit(request: AdmitRequest): Effect.Effect<RateState, Refusal | PortError>
  /** Idempotent by id. With `tx` it commits with the caller's own rows. */
  settle(items: readonly Settlement[], tx?: Transaction): Effect.Effect<void, PortError>
  /** Gives back the open holds of a batch before another worker takes it over. */
  voidChildren(parent: string, tx?: Transaction): Effect.Effect<void, PortError>
  /** With `tx` as that transaction sees it. */
  balance(
    account: string,
    tx?: Transaction,
  ): Effect.Effect<{ readonly balanceMicros: Micros; readonly heldMicros: Micros }, PortError>
  /** What keys have spent in this UTC month; a key that has spent nothing may be missing. */
  spentThisMonth(keyIds: readonly string[]): Effect.Effect<ReadonlyMap<string, Micros>, PortError>
  /** A grant (or, below zero, a correction). Idempotent by `id`. Makes the account's balance if there is none. */
  adjust(
    entry: {
      readonly id: string
      readonly account: string
      readonly amountMicros: Micros
      readonly reason: string
    },
    tx?: Transaction,
  ): Effect.Effect<void, BalanceTooLow | PortError>
}
