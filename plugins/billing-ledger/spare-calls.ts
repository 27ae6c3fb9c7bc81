import { Effect } from "effect"
import type { AdmitRequest, Clock, RateState, Refusal, Settlement } from "../../core/index.ts"
import { BriefMap } from "./brief-map.ts"
import {
  arrived,
  heard,
  isIdle,
  lifeMs,
  limitsOf,
  missingOf,
  newReserve,
  paceOf,
  pauseMs,
  type Reserve,
  type SpareCall,
  spareRequest,
  takeFitting,
} from "./reserve.ts"
import {
  type AdmissionVerdict,
  heldFor,
  type LedgerRequest,
  type LedgerSettlement,
  toRequest,
} from "./statement-values.ts"

export interface SpareCallsDeps {
  readonly clock: Clock
  /** Most of one key; 0: none at all. */
  readonly most: number
  /** Admits the requests, whose `counts` is `spare`; calls `done` with each answer, or without one. */
  admit(
    requests: readonly LedgerRequest[],
    done: (request: LedgerRequest, verdict: AdmissionVerdict | undefined) => void,
  ): void
  giveBack(spares: readonly SpareCall[]): Effect.Effect<void>
}

export interface SpareCalls {
  /** Returns the answer to the request where a spare call of its key fits, which is used then. */
  take(request: AdmitRequest): RateState | undefined
  /** The settlement of a call as the ledger takes it, until it has. */
  spent(item: Settlement): LedgerSettlement
  /** The call is settled. */
  forget(id: string): void
  /** The database has answered: spare calls that it counted are not used yet, so they remain. */
  corrected(request: AdmitRequest, verdict: AdmissionVerdict): AdmissionVerdict
  /**
   * Gives back what the refused request may need, of its key or, for its hold, of its account, and
   * ends when that has arrived, with what was asked for or given back before. Undefined: there is
   * nothing.
   */
  giveWay(request: AdmitRequest, reason: Refusal["reason"]): Effect.Effect<unknown> | undefined
  /** Gives back what nobody uses. */
  readonly giveBack: Effect.Effect<unknown>
}

const maxKeys = 1_000
const minuteMs = 60_000 + lifeMs
/** Beyond this, doubling it is no amount any more. */
const maxHoldMicros = 2n ** 60n

const keyOf = ({ tenant, keyId = "" }: AdmitRequest["caller"]): string =>
  `${tenant.account} ${tenant.mode} ${keyId}`

/** The reserves of the keys that were busy of late. */
const makeReserves = () => {
  const reserves = new Map<string, Reserve>()
  const of = ({ caller }: AdmitRequest) => reserves.get(keyOf(caller))
  let sweptMs = 0
  const add = (request: AdmitRequest, nowMs: number): Reserve | undefined => {
    if (reserves.size >= maxKeys && nowMs - sweptMs > pauseMs) {
      for (const [key, one] of reserves) if (isIdle(one, nowMs)) reserves.delete(key)
      sweptMs = nowMs
    }
    if (reserves.size >= maxKeys) return undefined
    const made = newReserve(request, nowMs)
    reserves.set(keyOf(request.caller), made)
    return made
  }
  return { of, add, all: () => reserves.values() }
}

/** Gives spare calls back, and remembers what is under way to the database or from it. */
const makeReturns = (giveBack: SpareCallsDeps["giveBack"]) => {
  const underWay = new BriefMap<number, readonly [done: Promise<void>, reserve: Reserve]>()
  let last = 0
  const watch = (reserve: Reserve, work: Promise<unknown>): void => {
    const number = ++last
    underWay.set(number, [work.then(() => underWay.delete(number)), reserve])
  }
  return {
    watch,
    add: (reserve: Reserve, isOver: (spare: SpareCall) => boolean = () => true): void => {
      const over = reserve.spares.filter(isOver)
      if (over.length === 0) return
      reserve.spares = reserve.spares.filter((spare) => !isOver(spare))
      reserve.remaining += over.length
      watch(reserve, Effect.runPromiseExit(giveBack(over)))
    },
    of: (isMeant: (reserve: Reserve) => boolean) => {
      const waits = underWay.values().flatMap(([done, reserve]) => (isMeant(reserve) ? done : []))
      return waits.length === 0 ? undefined : Effect.promise(() => Promise.all(waits))
    },
  }
}

/**
 * Gives back what is not used in its time. One timer for all: at the end of the oldest that it knows,
 * as all live equally long.
 */
const makeExpiry = (
  clock: Clock,
  reserves: ReturnType<typeof makeReserves>,
  returns: ReturnType<typeof makeReturns>,
) => {
  let isTimed = false
  const lookAfter = ({ spares: [oldest] }: Reserve): void => {
    if (isTimed || !oldest) return
    setTimeout(giveBackOld, Math.max(1, oldest.untilMs - clock.monotonicMs())).unref()
    isTimed = true
  }
  const giveBackOld = (): void => {
    isTimed = false
    const nowMs = clock.monotonicMs()
    for (const reserve of reserves.all()) {
      returns.add(reserve, ({ untilMs }) => untilMs <= nowMs)
      lookAfter(reserve)
    }
  }
  return lookAfter
}

/** The calls that used a spare call, until they are settled. */
const makeUsed = (): Pick<SpareCalls, "spent" | "forget"> & {
  readonly add: (request: AdmitRequest, spare: SpareCall) => void
} => {
  const used = new BriefMap<string, readonly [request: AdmitRequest, spare: SpareCall]>()
  return {
    add: (request, spare) => void used.set(request.id, [request, spare]),
    spent: (item) => {
      const [request, spare] = used.get(item.id) ?? []
      if (!request || !spare) return item
      const heldMicros = heldFor(request, spare.holdMicros)
      // assigned: to what begins with a spread V8 adds each further member anew, on a slow way
      return Object.assign({}, item, {
        account: spare.account,
        spare: { id: spare.id, heldMicros, request: toRequest(request, 0) },
      })
    },
    forget: (id) => used.delete(id),
  }
}

/**
 * Spare calls: of a busy key some are admitted before their requests arrive, which then wait for no
 * database. Limits and holds are checked as ever, only earlier. States of one: asked for -> waiting
 * -> used (it settles as the call that uses it) | given back (unused for `lifeMs`, its key's limits
 * changed, another call was refused, or the server stops). Those of a server that dies end with its
 * lease.
 */
export const makeSpareCalls = ({ clock, most, admit, giveBack }: SpareCallsDeps): SpareCalls => {
  const reserves = makeReserves()
  const returns = makeReturns(giveBack)
  const used = makeUsed()
  const lookAfter = makeExpiry(clock, reserves, returns)

  const ask = (reserve: Reserve, like: AdmitRequest, count: number, askedMs: number): void => {
    if (count === 0) return
    reserve.asked += count
    const requests = Array.from({ length: count }, () => spareRequest(like, clock))
    let unanswered = count
    const asked = new Promise<void>((resolve) => {
      admit(requests, (request, verdict) => {
        arrived(reserve, request, verdict, askedMs, clock.monotonicMs())
        if (limitsOf(request.caller) !== reserve.limits) returns.add(reserve)
        lookAfter(reserve)
        if (--unanswered === 0) resolve()
      })
    })
    returns.watch(reserve, asked)
  }
  const take = (request: AdmitRequest): RateState | undefined => {
    if (most === 0 || request.counts !== "all" || request.holdMicros > maxHoldMicros) return
    const nowMs = clock.monotonicMs()
    const reserve = reserves.of(request) ?? reserves.add(request, nowMs)
    if (!reserve) return
    const limits = limitsOf(request.caller)
    if (limits !== reserve.limits) returns.add(reserve)
    reserve.limits = limits
    const spare = takeFitting(reserve, request.holdMicros, nowMs)
    ask(reserve, request, missingOf(reserve, paceOf(reserve, nowMs), most, nowMs), nowMs)
    if (!spare) return
    used.add(request, spare)
    const remaining = reserve.remaining + reserve.spares.length
    return { limit: request.caller.limits.rpm, remaining, resetMs: minuteMs, holdMs: 0 }
  }

  return {
    take,
    spent: used.spent,
    forget: used.forget,
    corrected: (request, verdict) => {
      const reserve = reserves.of(request)
      if (!reserve) return verdict
      if (request.counts !== "peek") heard(reserve, verdict, clock.monotonicMs())
      const remaining = verdict.rate.remaining + reserve.spares.length
      return { ...verdict, rate: { ...verdict.rate, remaining } }
    },
    giveWay: ({ caller, counts }, reason) => {
      const isMeant = ({ account, keyId }: Reserve) =>
        account === caller.tenant.account && (reason === "balance" || keyId === caller.keyId)
      const untilMs = clock.monotonicMs() + pauseMs
      for (const reserve of reserves.all()) {
        if (!isMeant(reserve)) continue
        if (counts !== "peek") reserve.pausedUntilMs = untilMs
        returns.add(reserve)
      }
      return returns.of(isMeant)
    },
    giveBack: Effect.suspend(() => {
      for (const reserve of reserves.all()) returns.add(reserve)
      return returns.of(() => true) ?? Effect.void
    }),
  }
}
