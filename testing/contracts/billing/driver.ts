import { randomUUID } from "node:crypto"
import { Effect, type Exit } from "effect"
import { defaultLimits, type Limits } from "../../../core/caller.ts"
import type { BalanceTooLow, PortError } from "../../../core/errors.ts"
import type {
  AdmitRequest,
  Billing,
  RateState,
  Refusal,
  Settlement,
} from "../../../core/ports/billing.ts"
import { uuidV7 } from "../../../core/services/ids.ts"
import type { FakeClock } from "../../fakes/clock.ts"

export interface OpenedBilling {
  readonly billing: Billing
  readonly clock: FakeClock
  /** Whether it keeps balances. Without, balance and monthly cap are not tested. */
  readonly money: boolean
  /** Takes its database away, and gives it back. Absent: it has none. */
  readonly outage?: {
    begin(): void
    /** Resolves when what was kept meanwhile is settled. */
    end(): Promise<void>
  }
  close(): Promise<void>
}

export type Ask = Partial<
  Pick<AdmitRequest, "counts" | "holdMicros" | "parent" | "model" | "prices" | "expiresMs">
> & {
  readonly limits?: Partial<Limits>
  readonly mode?: "live" | "test"
}

/** One account with one key, and short methods for what tests do with them. */
export class BillingDriver {
  readonly account = `acc-${randomUUID()}`
  readonly key = `key-${randomUUID()}`
  readonly open: OpenedBilling
  constructor(open: OpenedBilling) {
    this.open = open
  }
  request(ask: Ask): AdmitRequest {
    const { counts = "all", holdMicros = 0n, limits, mode = "live", ...more } = ask
    const caller = {
      tenant: { account: this.account, mode },
      keyId: this.key,
      scopes: ["*"],
      role: "user" as const,
      limits: { ...defaultLimits, ...limits },
    }
    return {
      id: uuidV7(this.open.clock.nowMs()),
      caller,
      endpoint: "chat.completions",
      requestId: "req-1",
      holdMicros,
      counts,
      ...more,
    }
  }
  /** Returns the call's id with the rate state, or the refusal. */
  async admit(ask: Ask = {}): Promise<{ id: string; rate?: RateState; refused?: Refusal }> {
    const request = this.request(ask)
    const answer = await Effect.runPromise(
      this.open.billing.admit(request).pipe(
        // the hold's duration differs each time
        Effect.map(({ holdMs: _, ...rate }) => ({ rate })),
        Effect.catchTag("Refusal", (refused) => Effect.succeed({ refused })),
      ),
    )
    return { id: request.id, ...answer }
  }
  /** Returns the number of admitted calls of `n` parallel ones. */
  async flood(n: number, ask: Ask): Promise<number> {
    const answers = await Promise.all(Array.from({ length: n }, () => this.admit(ask)))
    return answers.filter((answer) => answer.rate).length
  }
  settle(id: string, outcome: Settlement["outcome"] = "settled", costMicros = 0n): Promise<void> {
    return Effect.runPromise(
      this.open.billing.settle([{ id, outcome, costMicros, usage: {}, httpStatus: 200 }]),
    )
  }
  grant(
    amountMicros: bigint,
    id: string = randomUUID(),
  ): Promise<Exit.Exit<void, BalanceTooLow | PortError>> {
    return Effect.runPromiseExit(
      this.open.billing.adjust({ id, account: this.account, amountMicros, reason: "test" }),
    )
  }
  /** Returns what its key has spent in this UTC month. */
  async spent(): Promise<bigint> {
    return (
      (
        await Effect.runPromise(this.open.billing.spentThisMonth([this.key, `${this.key}-unknown`]))
      ).get(this.key) ?? 0n
    )
  }
  async balance(): Promise<readonly [bigint, bigint]> {
    const { balanceMicros, heldMicros } = await Effect.runPromise(
      this.open.billing.balance(this.account),
    )
    return [balanceMicros, heldMicros]
  }
}

export const reasonOf = async (answer: Promise<{ refused?: Refusal }>) =>
  (await answer).refused?.reason
