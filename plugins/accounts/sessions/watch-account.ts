import { Effect, Schedule, Schema, Stream } from "effect"
import {
  apiError,
  defineEndpoint,
  type Endpoint,
  freePlan,
  isApiError,
  portFailure,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { AccountReply } from "../to-account.ts"
import { ownAccount, showAccount } from "./show-account.ts"

const intervalMs = 2_000
/** Whoever watches asks again then, and shows a session that is still valid. */
const maxMs = 20_000
/** Open tabs of one account. */
const maxOpen = 10

const AccountEvent = Schema.Struct({
  object: Schema.Literal("account.event"),
  account: AccountReply,
}).annotate({ identifier: "AccountEvent" })

/** The present value of `show` and each that differs from the one before, for `maxMs`. */
export const changesOf = <A, E>(show: Effect.Effect<A, E>): Stream.Stream<A, E> =>
  Stream.fromEffectSchedule(show, Schedule.spaced(intervalMs)).pipe(
    Stream.changesWith((a, b) => JSON.stringify(a) === JSON.stringify(b)),
    Stream.interruptWhen(Effect.sleep(maxMs)),
  )

/** Counts the open streams of each account. */
const makeSlots = () => {
  const open = new Map<string, number>()
  const change = (account: string, by: number) => {
    const next = (open.get(account) ?? 0) + by
    if (next > 0) open.set(account, next)
    else open.delete(account)
  }
  return (account: string) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        if ((open.get(account) ?? 0) >= maxOpen)
          return Effect.fail(apiError("concurrency_exceeded", "Too many tabs watch this account."))
        change(account, 1)
        return Effect.void
      }),
      () => Effect.sync(() => change(account, -1)),
    )
}

export const watchEndpoint = (started: WhenStarted<AccountsDeps>): Endpoint => {
  const takeSlot = makeSlots()
  return defineEndpoint({
    id: "dashboard.events",
    summary: "The account of the session, now and after each change, for 20 seconds.",
    method: "GET",
    path: "/dashboard/events",
    access: "session",
    body: "none",
    maxBodyBytes: 0,
    event: AccountEvent,
    plan: ({ caller }) =>
      Effect.map(started, (deps) => {
        const show = Effect.flatMap(ownAccount(deps, caller), (row) => showAccount(deps, row))
        const events = changesOf(show).pipe(
          Stream.map((account) => ({ object: "account.event", account })),
          Stream.mapError((error) => (isApiError(error) ? error : portFailure(error))),
        )
        return freePlan(Effect.as(takeSlot(caller?.tenant.account ?? ""), { status: 200, events }))
      }),
  })
}
