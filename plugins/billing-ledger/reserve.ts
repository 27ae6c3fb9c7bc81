import { type AdmitRequest, type Clock, uuidV7 } from "../../core/index.ts"
import type { AdmissionVerdict, LedgerRequest } from "./statement-values.ts"

/** An open call that no request uses yet. */
export interface SpareCall {
  readonly id: string
  readonly account: string
  readonly holdMicros: bigint
  /** By the monotonic clock. */
  readonly untilMs: number
}

/** The spare calls of one key, and how busy it is. */
export interface Reserve {
  readonly account: string
  readonly keyId: string | undefined
  limits: string
  /** The oldest first. */
  spares: SpareCall[]
  /** Asked for, and not answered yet. */
  asked: number
  /** What the database said last, which counts all spare calls. */
  remaining: number
  pausedUntilMs: number
  /** When an answer first came too late, since one came in time. */
  lateSinceMs: number | undefined
  windowBeganMs: number
  calls: number
  callsBefore: number
}

/** As `ledger_spare_life` says, by which the minute of such a key is longer. */
export const lifeMs = 250
/** So long a key's spare calls should last. */
const windowMs = 50
/** Calls within a window that make a key busy. */
const busy = 4
/** After a refusal, no answer, or two in a row that came too late. */
export const pauseMs = 1_000

export const limitsOf = ({ limits }: AdmitRequest["caller"]): string =>
  `${limits.rpm} ${limits.rpd} ${limits.concurrency} ${limits.monthlyCapMicros}`

export const newReserve = ({ caller }: AdmitRequest, nowMs: number): Reserve => ({
  account: caller.tenant.account,
  keyId: caller.keyId,
  limits: limitsOf(caller),
  spares: [],
  ...{ asked: 0, remaining: 0, pausedUntilMs: 0, lateSinceMs: undefined },
  ...{ windowBeganMs: nowMs, calls: 0, callsBefore: 0 },
})

export const isIdle = ({ spares, asked, windowBeganMs }: Reserve, nowMs: number): boolean =>
  spares.length + asked === 0 && nowMs - windowBeganMs > pauseMs

/** Counts a call; returns how many a window has at this pace. */
export const paceOf = (reserve: Reserve, nowMs: number): number => {
  const age = nowMs - reserve.windowBeganMs
  if (age >= windowMs) {
    reserve.callsBefore = age < 2 * windowMs ? reserve.calls : 0
    reserve.windowBeganMs = nowMs
    reserve.calls = 0
  }
  reserve.calls++
  return Math.max(reserve.calls, reserve.callsBefore)
}

/** A much larger hold would keep money that others may need. */
const fits = (holdMicros: bigint, request: bigint): boolean =>
  holdMicros >= request && holdMicros <= 4n * request

export const takeFitting = (
  { spares }: Reserve,
  request: bigint,
  nowMs: number,
): SpareCall | undefined => {
  const at = spares.findIndex(
    ({ holdMicros, untilMs }) => untilMs > nowMs && fits(holdMicros, request),
  )
  return at === -1 ? undefined : spares.splice(at, 1)[0]
}

/** Returns how many to ask for: when half is used, all that is missing. */
export const missingOf = (reserve: Reserve, pace: number, most: number, nowMs: number): number => {
  const wanted = Math.min(most, pace)
  const has = reserve.spares.filter(({ untilMs }) => untilMs > nowMs).length + reserve.asked
  return pace < busy || has > wanted / 2 || nowMs < reserve.pausedUntilMs ? 0 : wanted - has
}

/** The next power of two, so that one spare call fits requests of about the same size. */
const roundedUp = (micros: bigint): bigint =>
  micros < 2n ? micros : 1n << BigInt((micros - 1n).toString(2).length)

export const spareRequest = (like: AdmitRequest, clock: Clock): LedgerRequest => ({
  id: uuidV7(clock.nowMs()),
  counts: "spare",
  requestId: "",
  caller: like.caller,
  endpoint: like.endpoint,
  holdMicros: roundedUp(like.holdMicros),
  // the last call that it may be used by
  expiresMs: like.expiresMs === undefined ? undefined : like.expiresMs + lifeMs,
})

/** What the database said of a call; after a refusal there are no new spare calls for a while. */
export const heard = (
  reserve: Reserve,
  { rate, refused }: AdmissionVerdict,
  nowMs: number,
): void => {
  reserve.remaining = rate.remaining
  if (refused) reserve.pausedUntilMs = nowMs + pauseMs
}

/** Adds the spare call that was asked for at `askedMs`, unless there is none. */
export const arrived = (
  reserve: Reserve,
  { id, holdMicros }: LedgerRequest,
  verdict: AdmissionVerdict | undefined,
  askedMs: number,
  nowMs: number,
): void => {
  const untilMs = askedMs + lifeMs
  reserve.asked--
  if (verdict) heard(reserve, verdict, nowMs)
  const isLate = untilMs <= nowMs
  // once may be a hiccup, after which all calls would wait; a database that stays slow gets no more work
  const isSlow = isLate && reserve.lateSinceMs !== undefined && askedMs >= reserve.lateSinceMs
  reserve.lateSinceMs = isLate ? (reserve.lateSinceMs ?? nowMs) : undefined
  if (!verdict || isSlow) reserve.pausedUntilMs = nowMs + pauseMs
  if (verdict && !verdict.refused)
    reserve.spares.push({ id, holdMicros, account: reserve.account, untilMs })
}
