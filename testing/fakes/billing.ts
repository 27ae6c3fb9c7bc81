import { Effect } from "effect"
import type { Limits } from "../../core/caller.ts"
import { BalanceTooLow, PortError } from "../../core/errors.ts"
import { lesser, type Micros } from "../../core/money.ts"
import type {
  AdmitRequest,
  Billing,
  RateState,
  Refusal,
  Settlement,
} from "../../core/ports/billing.ts"
import type { Clock } from "../../core/services/clock.ts"

const minuteMs = 60_000
const dayMs = 86_400_000

export interface FakeCall {
  readonly request: AdmitRequest
  readonly key: string
  readonly account: string
  readonly atMs: number
  readonly holdMicros: Micros
  state: "open" | "settled" | "voided" | "refused" | "expired"
  costMicros: Micros
  settlement?: Settlement
}

export interface FakeBilling extends Billing {
  /** Admitted calls, the oldest first. */
  readonly calls: readonly FakeCall[]
  /** Settles open calls as if their replica had died. */
  expireOpen(): void
  /** Settles the open calls that have expired. */
  expireDue(): void
}

interface Book {
  readonly calls: FakeCall[]
  balanceOf(account: string): Micros
  move(account: string, micros: Micros): void
}

const sum = (amounts: readonly Micros[]): Micros => amounts.reduce((a, b) => a + b, 0n)
const dayOf = (ms: number) => Math.floor(ms / dayMs)
const monthOf = (ms: number) => new Date(ms).toISOString().slice(0, 7)
const nextMonthMs = (ms: number) =>
  Date.UTC(new Date(ms).getUTCFullYear(), new Date(ms).getUTCMonth() + 1)

const heldOf = (book: Book, account: string) =>
  sum(
    book.calls
      .filter((call) => call.account === account && call.state === "open")
      .map((call) => call.holdMicros),
  )
const freeOf = (book: Book, account: string) => book.balanceOf(account) - heldOf(book, account)
const ofKey = (book: Book, key: string) =>
  book.calls.filter((call) => call.key === key && call.state !== "refused")
const wholeCallsOf = (book: Book, key: string) =>
  ofKey(book, key).filter((call) => call.request.counts === "all")
const minuteOf = (book: Book, key: string, nowMs: number) =>
  ofKey(book, key).filter((call) => call.request.counts !== "money" && call.atMs > nowMs - minuteMs)
const takenOf = (book: Book, key: string, nowMs: number) =>
  sum(
    ofKey(book, key)
      .filter((call) => monthOf(call.atMs) === monthOf(nowMs))
      .map((call) => (call.state === "open" ? call.holdMicros : call.costMicros)),
  )

const spentOf = (book: Book, key: string, nowMs: number) =>
  sum(
    ofKey(book, key)
      .filter((call) => monthOf(call.atMs) === monthOf(nowMs))
      .map((call) => call.costMicros),
  )

const rateOf = (book: Book, key: string, nowMs: number, limit: number): RateState => {
  const minute = minuteOf(book, key, nowMs)
  const newest = minute.at(-1)
  return {
    limit,
    remaining: Math.max(0, limit - minute.length),
    resetMs: newest ? newest.atMs + minuteMs - nowMs : 0,
  }
}

type Refused = Pick<Refusal, "reason" | "retryAfterMs">

const checkRate = (
  book: Book,
  { key, atMs, request }: FakeCall,
  limits: Limits,
): Refused | undefined => {
  if (request.counts === "money" || request.counts === "peek") return undefined
  const minute = minuteOf(book, key, atMs)
  if (minute.length >= limits.rpm)
    return { reason: "rpm", retryAfterMs: (minute[0]?.atMs ?? atMs) + minuteMs - atMs }
  if (request.counts === "rpm") return undefined
  const today = wholeCallsOf(book, key).filter((call) => dayOf(call.atMs) === dayOf(atMs))
  if (today.length >= limits.rpd)
    return { reason: "rpd", retryAfterMs: (dayOf(atMs) + 1) * dayMs - atMs }
  const open = wholeCallsOf(book, key).filter((call) => call.state === "open")
  return open.length >= limits.concurrency
    ? { reason: "concurrency", retryAfterMs: 1000 }
    : undefined
}

const checkMoney = (
  book: Book,
  { key, account, atMs, holdMicros }: FakeCall,
  limits: Limits,
): Refused | undefined => {
  if (holdMicros === 0n) return undefined
  const cap = limits.monthlyCapMicros
  if (cap > 0n && takenOf(book, key, atMs) + holdMicros > cap)
    return { reason: "monthly_cap", retryAfterMs: nextMonthMs(atMs) - atMs }
  return holdMicros > freeOf(book, account) ? { reason: "balance", retryAfterMs: 0 } : undefined
}

const callOf = (request: AdmitRequest, atMs: number): FakeCall => {
  const { caller, counts } = request
  const { account, mode } = caller.tenant
  const holdsNothing = mode === "test" || counts === "rpm"
  return {
    request,
    account,
    key: caller.keyId ?? `session:${account}`,
    atMs,
    holdMicros: holdsNothing ? 0n : request.holdMicros,
    state: counts === "rpm" ? "settled" : "open",
    costMicros: 0n,
  }
}

const admitInto = (
  book: Book,
  request: AdmitRequest,
  nowMs: number,
): Effect.Effect<RateState, Refusal | PortError> => {
  const { limits } = request.caller
  if (book.calls.some((call) => call.request.id === request.id))
    return Effect.fail(
      new PortError({ port: "billing", message: `call ${request.id} was admitted before` }),
    )
  const call = callOf(request, nowMs)
  const refused = checkRate(book, call, limits) ?? checkMoney(book, call, limits)
  if (refused)
    return Effect.fail({
      _tag: "Refusal",
      ...refused,
      rate: rateOf(book, call.key, nowMs, limits.rpm),
    })
  if (request.counts !== "peek") book.calls.push(call)
  return Effect.succeed(rateOf(book, call.key, nowMs, limits.rpm))
}

const settleInto = (book: Book, item: Settlement): void => {
  const call = book.calls.find((call) => call.request.id === item.id)
  const late = call?.state === "expired" && item.outcome === "settled"
  if (!call || (call.state !== "open" && !late)) return
  const owed = item.outcome === "settled" ? lesser(item.costMicros, call.holdMicros) : 0n
  const cost = late ? lesser(owed, freeOf(book, call.account)) : owed
  Object.assign(call, { state: item.outcome, costMicros: cost, settlement: item })
  book.move(call.account, -cost)
}

const makeBook = (startMicros: Micros): Book => {
  const balances = new Map<string, Micros>()
  const balanceOf = (account: string) => balances.get(account) ?? startMicros
  return {
    calls: [],
    balanceOf,
    move: (account, micros) => void balances.set(account, balanceOf(account) + micros),
  }
}

/**
 * The whole Billing port in memory, slow and exact: it looks at every call ever made, so that it
 * can serve as the reference for real ledgers.
 * Transactions are ignored. Accounts that nobody adjusted start with `startMicros`.
 */
export const fakeBilling = (clock: Clock, startMicros: Micros = 0n): FakeBilling => {
  const book = makeBook(startMicros)
  const entries = new Set<string>()
  const close = (state: FakeCall["state"], which: (call: FakeCall) => boolean) => {
    for (const call of book.calls) if (call.state === "open" && which(call)) call.state = state
  }
  const adjust: Billing["adjust"] = ({ id, account, amountMicros }) =>
    Effect.suspend(() => {
      if (entries.has(id)) return Effect.void
      if (amountMicros < 0n && freeOf(book, account) + amountMicros < 0n)
        return Effect.fail(new BalanceTooLow({ account }))
      entries.add(id)
      book.move(account, amountMicros)
      return Effect.void
    })
  return {
    calls: book.calls,
    admit: (request) => Effect.suspend(() => admitInto(book, request, clock.nowMs())),
    settle: (items) =>
      Effect.sync(() => {
        for (const item of items) settleInto(book, item)
      }),
    voidChildren: (parent) =>
      Effect.sync(() => close("voided", (call) => call.request.parent === parent)),
    balance: (account) =>
      Effect.sync(() => ({
        balanceMicros: book.balanceOf(account),
        heldMicros: heldOf(book, account),
      })),
    spentThisMonth: (keyIds) =>
      Effect.sync(() => new Map(keyIds.map((key) => [key, spentOf(book, key, clock.nowMs())]))),
    adjust,
    expireOpen: () => close("expired", () => true),
    expireDue: () =>
      close(
        "expired",
        ({ request }) => request.expiresMs !== undefined && request.expiresMs <= clock.nowMs(),
      ),
  }
}
