import { Effect } from "effect"
import type {
  AdmitRequest,
  Billing,
  Clock,
  RateState,
  Refusal,
  Settlement,
} from "../../core/index.ts"
import { KeyUsage, type Mark } from "./key-usage.ts"

/**
 * The balance of every account: nine billion rupiah, about the most micros that a JSON number holds
 * exactly.
 */
export const unlimitedMicros = 9_000_000_000_000_000n

/**
 * Returns the usage of a key. Keeps at most `maxKeys`, in the order of their last use; keys with
 * open calls are never dropped.
 */
const makeKeys = (maxKeys: number) => {
  const keys = new Map<string, KeyUsage>()
  const forgetOne = () => {
    for (const [key, usage] of keys) if (usage.idle) return keys.delete(key)
    return false
  }
  return (key: string): KeyUsage => {
    const usage = keys.get(key) ?? new KeyUsage()
    keys.delete(key)
    while (keys.size >= maxKeys && forgetOne());
    return keys.set(key, usage).get(key) ?? usage
  }
}

/** RPM, RPD and concurrency of each key, exact within this process. No money. */
export const makeFreeBilling = (clock: Clock, maxKeys: number): Billing => {
  const usageOf = makeKeys(maxKeys)
  const open = new Map<string, { readonly usage: KeyUsage; readonly mark: Mark }>()

  const admit = ({ id, caller, counts }: AdmitRequest): Effect.Effect<RateState, Refusal> => {
    const nowMs = clock.nowMs()
    const usage = usageOf(caller.keyId ?? `session:${caller.tenant.account}`)
    const refused = usage.check(counts, caller.limits, nowMs)
    if (refused)
      return Effect.fail({
        _tag: "Refusal",
        ...refused,
        rate: usage.rate(caller.limits.rpm, nowMs),
      })
    const mark =
      counts === "all" || counts === "rpm" ? usage.take(counts === "all", nowMs) : undefined
    if (mark && counts === "all") open.set(id, { usage, mark })
    return Effect.succeed(usage.rate(caller.limits.rpm, nowMs))
  }

  const settle = ({ id, outcome }: Settlement): void => {
    const call = open.get(id)
    open.delete(id)
    call?.usage.end(call.mark, outcome === "refused")
  }

  return {
    admit: (request) => Effect.suspend(() => admit(request)),
    settle: (items) =>
      Effect.sync(() => {
        for (const item of items) settle(item)
      }),
    voidChildren: () => Effect.void,
    balance: () => Effect.succeed({ balanceMicros: unlimitedMicros, heldMicros: 0n }),
    spentThisMonth: () => Effect.succeed(new Map()),
    adjust: () => Effect.void,
  }
}
