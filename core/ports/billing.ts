import type { Effect } from "effect"
import type { Caller } from "../caller.ts"
import type { ApiError, BalanceTooLow, PortError } from "../errors.ts"
import type { Json } from "../json.ts"
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
  /** The first model that the call plans to use; shown in usage reports. */
  readonly model?: ModelId | undefined
  /** The prices in force at admission, stored with the call. */
  readonly prices?: PriceTag | undefined
  /** Unix ms; a call that is still open then expires. */
  readonly expiresMs?: number | undefined
  /** The worst-case price. 0: nothing is held, and no money is settled. */
  readonly holdMicros: Micros
  /** The batch that this line belongs to. */
  readonly parent?: string
  /**
   * `all`: a call, counts toward every limit and takes a concurrency slot. `rpm`: a dry run, counts
   * toward RPM only and holds nothing.
   * `money`: a batch line, holds money and skips RPM, RPD and concurrency. `peek`: changes nothing;
   * returns the rate state, or the refusal of this hold, by balance and monthly cap.
   */
  readonly counts: "all" | "rpm" | "money" | "peek"
}

/** State of the rolling minute, for `x-ratelimit-*`. */
export interface RateState {
  readonly limit: number
  readonly remaining: number
  /** Until the window is empty again. */
  readonly resetMs: number
  /** The part of the admission's duration that went into slot and hold. */
  readonly holdMs?: number
}

export interface Refusal {
  readonly _tag: "Refusal"
  /** In the order in which they are checked. */
  readonly reason: "rpm" | "rpd" | "concurrency" | "monthly_cap" | "balance"
  readonly rate: RateState
  readonly retryAfterMs: number
}

export interface Settlement {
  readonly id: CallId
  /**
   * `voided`: costs nothing, but counts toward the limits. `refused`: the backend was busy, so the
   * counts are reverted too.
   */
  readonly outcome: "settled" | "voided" | "refused"
  /** Capped by the hold. */
  readonly costMicros: Micros
  readonly usage: UsageByModel
  readonly httpStatus: number
  /** `Server-Timing` as known when it ended, for the call log. */
  readonly timing?: string
  /** Why it failed, as the client saw it; for the call log. */
  readonly failure?: Pick<ApiError, "code" | "message">
  /** Shown in the receipt. */
  readonly evidence?: Readonly<Record<string, Json>>
}

/** A request of a known key that is refused before it is a call: a wrong body, an unknown model. */
export interface RefusedRequest {
  readonly caller: Caller
  readonly endpoint: string
  /** One of the catalogue's, if the request names one. */
  readonly model?: ModelId | undefined
  readonly requestId: string
  readonly error: ApiError
}

/**
 * Limits and money. States of a call: open -> settled | voided | refused | expired (its replica
 * died, or its deadline passed); expired -> settled (late).
 * `admit` checks and reserves everything in one atomic step, so that parallel calls can't overdraw
 * anything.
 */
export interface Billing {
  admit(request: AdmitRequest): Effect.Effect<RateState, Refusal | PortError>
  /** Counts it as an error in usage reports, shows it in the call log, and toward no limit. Must be cheap. */
  noteRefused?(request: RefusedRequest): void
  /**
   * Idempotent by id. Without `tx` it succeeds, too, when its database can't take the items now: it
   * keeps them, durably, until it can. With `tx` it commits with the caller's own rows.
   */
  settle(items: readonly Settlement[], tx?: Transaction): Effect.Effect<void, PortError>
  /** Voids the open holds of a batch before another worker takes it over. */
  voidChildren(parent: string, tx?: Transaction): Effect.Effect<void, PortError>
  /** With `tx`, as seen by that transaction. */
  balance(
    account: string,
    tx?: Transaction,
  ): Effect.Effect<{ readonly balanceMicros: Micros; readonly heldMicros: Micros }, PortError>
  /** Spend of keys in this UTC month; a key without spend may be missing. */
  spentThisMonth(keyIds: readonly string[]): Effect.Effect<ReadonlyMap<string, Micros>, PortError>
  /**
   * Adds a grant (or, below zero, a correction). Idempotent by `id`. Creates the account's balance
   * if there is none.
   */
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
