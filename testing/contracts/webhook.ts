import { Deferred, Effect, Fiber, type Scope } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Tenant } from "../../core/caller.ts"
import type { Database } from "../../core/ports/database.ts"
import type { Webhook } from "../../core/ports/webhook.ts"
import type { EmittedEvent } from "../fakes/webhook.ts"

export interface OpenedWebhook {
  readonly webhook: Webhook
  /** Three tenants, each with one address that is registered for all events. */
  readonly tenants: readonly [Tenant, Tenant, Tenant]
  /** What their addresses have received once everything emitted so far is delivered. */
  readonly events: Effect.Effect<readonly EmittedEvent[], unknown>
  /** Absent where the adapter does not support transactions. */
  readonly transaction?: Database["transaction"]
}

type Cases = Readonly<
  Record<string, (opened: OpenedWebhook) => Effect.Effect<void, unknown, Scope.Scope>>
>

/**
 * Delivery is at least once and in no order, so events are identified by their data and compared as
 * sets.
 */
const dataOf = (events: readonly EmittedEvent[]): readonly string[] =>
  [
    ...new Set(
      events.map(({ tenant, event, data }) =>
        JSON.stringify([tenant.account, tenant.mode, event, data]),
      ),
    ),
  ].sort()

const expectReceived = (opened: OpenedWebhook, expected: readonly EmittedEvent[]) =>
  Effect.map(opened.events, (events) => expect(dataOf(events)).toEqual(dataOf(expected)))

const emissionCases: Cases = {
  "brings an event with its data": (opened) =>
    Effect.gen(function* () {
      const emitted = {
        tenant: opened.tenants[0],
        event: "batch.completed",
        data: { id: "batch-1", counts: { total: 3, failed: 0 }, note: 'é\u2028"' },
      }
      yield* opened.webhook.emit(emitted.tenant, emitted.event, emitted.data)
      yield* expectReceived(opened, [emitted])
    }),

  "keeps tenants apart, live and test as well": (opened) =>
    Effect.gen(function* () {
      const all = opened.tenants.map((tenant, n) => ({
        tenant,
        event: "batch.failed",
        data: { n },
      }))
      expect(new Set(opened.tenants.map(({ account, mode }) => `${account} ${mode}`)).size).toBe(3)
      for (const { tenant, event, data } of all) yield* opened.webhook.emit(tenant, event, data)
      yield* expectReceived(opened, all)
    }),

  "does not mind a tenant that nobody listens for": (opened) =>
    Effect.gen(function* () {
      yield* opened.webhook.emit({ account: "acc-nobody", mode: "live" }, "batch.completed", {
        id: "batch-1",
      })
      expect(
        (yield* opened.events).filter(({ tenant }) => tenant.account !== "acc-nobody"),
      ).toEqual([])
    }),

  "takes the data as it is at that moment": (opened) =>
    Effect.gen(function* () {
      const data = { id: "batch-1", status: "completed" }
      yield* opened.webhook.emit(opened.tenants[0], "batch.completed", data)
      data.status = "changed"
      yield* expectReceived(opened, [
        {
          tenant: opened.tenants[0],
          event: "batch.completed",
          data: { id: "batch-1", status: "completed" },
        },
      ])
    }),

  "loses none of many at once": (opened) =>
    Effect.gen(function* () {
      const many = Array.from({ length: 30 }, (_, n) => ({
        tenant: opened.tenants[n % 3]!,
        event: "batch.completed",
        data: { n },
      }))
      yield* Effect.forEach(
        many,
        ({ tenant, event, data }) => opened.webhook.emit(tenant, event, data),
        { concurrency: "unbounded" },
      )
      yield* expectReceived(opened, many)
    }),
}

const ghost = (opened: OpenedWebhook, tx: Parameters<Webhook["emit"]>[3]) =>
  opened.webhook.emit(opened.tenants[0], "batch.completed", { id: "ghost" }, tx)

const transactionCases: Cases = {
  "shows an event when its transaction commits, not before": (opened) =>
    Effect.gen(function* () {
      if (opened.transaction === undefined) return
      const emitted = {
        tenant: opened.tenants[0],
        event: "batch.completed",
        data: { id: "batch-1" },
      }
      yield* opened.transaction((tx) =>
        Effect.andThen(
          opened.webhook.emit(emitted.tenant, emitted.event, emitted.data, tx),
          expectReceived(opened, []),
        ),
      )
      yield* expectReceived(opened, [emitted])
    }),

  "never shows one whose transaction failed": (opened) =>
    Effect.gen(function* () {
      if (opened.transaction === undefined) return
      expect(
        yield* Effect.flip(
          opened.transaction((tx) => Effect.andThen(ghost(opened, tx), Effect.fail("no"))),
        ),
      ).toBe("no")
      yield* expectReceived(opened, [])
    }),

  "never shows one whose transaction was interrupted": (opened) =>
    Effect.gen(function* () {
      if (opened.transaction === undefined) return
      const emitted = Deferred.makeUnsafe<void>()
      const body = opened.transaction((tx) =>
        ghost(opened, tx).pipe(
          Effect.andThen(Deferred.succeed(emitted, undefined)),
          Effect.andThen(Effect.never),
        ),
      )
      const fiber = yield* Effect.forkChild(body)
      yield* Deferred.await(emitted)
      yield* Fiber.interrupt(fiber)
      yield* expectReceived(opened, [])
    }),
}

const sequence = fc.array(
  fc.record({
    to: fc.nat(2),
    data: fc.jsonValue({ maxDepth: 2 }),
    tx: fc.constantFrom("none", "commit", "rollback"),
  }),
  { maxLength: 12 },
)

const playAll =
  (moves: readonly { readonly to: number; readonly data: unknown; readonly tx: string }[]) =>
  (opened: OpenedWebhook): Effect.Effect<void, unknown> =>
    Effect.gen(function* () {
      const expected: EmittedEvent[] = []
      for (const [n, move] of moves.entries()) {
        const tenant = opened.tenants[move.to]!
        const data = { n, data: move.data }
        const emit = (tx?: Parameters<Webhook["emit"]>[3]) =>
          opened.webhook.emit(tenant, "batch.completed", data, tx)
        const ending = move.tx === "rollback" ? Effect.fail("rolled back") : Effect.void
        if (opened.transaction === undefined || move.tx === "none") yield* emit()
        else yield* Effect.exit(opened.transaction((tx) => Effect.andThen(emit(tx), ending)))
        if (opened.transaction === undefined || move.tx !== "rollback")
          expected.push({ tenant, event: "batch.completed", data })
      }
      yield* expectReceived(opened, expected)
    })

/**
 * What every Webhook does: an event reaches its tenant's addresses and nobody else's, with the data
 * as they were, at least once, if its transaction committed.
 * `open` is called for every case and gives a new one. `modelRuns`: how many random sequences are
 * tried.
 */
export const webhookContract = (
  name: string,
  open: Effect.Effect<OpenedWebhook, unknown, Scope.Scope>,
  modelRuns = 100,
): void => {
  const run = (work: Cases[string]) => Effect.runPromise(Effect.scoped(Effect.flatMap(open, work)))
  describe(`webhook contract: ${name}`, () => {
    for (const [title, work] of Object.entries(emissionCases)) it(title, () => run(work))
    for (const [title, work] of Object.entries(transactionCases))
      it(title, ({ skip }) =>
        run((opened) => (opened.transaction === undefined ? Effect.sync(skip) : work(opened))),
      )
    it(
      "brings exactly what was committed, over any sequence",
      () =>
        fc.assert(
          fc.asyncProperty(sequence, (moves) => run(playAll(moves))),
          { numRuns: modelRuns },
        ),
      120_000,
    )
  })
}
