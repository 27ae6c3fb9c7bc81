import { Effect, type Scope } from "effect"
import { describe, it } from "vitest"
import type { Json } from "../../core/json.ts"
import type { Database } from "../../core/ports/database.ts"
import type { Queue } from "../../core/ports/queue.ts"
import { queueDeliveryCases } from "./queue/delivery.ts"
import { queueFailureCases } from "./queue/failures.ts"
import { queueKeyCases } from "./queue/keys.ts"
import { queueLeaseCases } from "./queue/leases.ts"
import { queueModelCase } from "./queue/model.ts"
import { queueTransactionCases } from "./queue/transactions.ts"

export interface OpenedQueue {
  /** An empty queue, as one process sees it. */
  readonly queue: Queue
  /** The same queue, as another process sees it. */
  readonly other: Queue
  /**
   * From now on the consumers of `queue` (not those of `other`) can renew, take and report nothing,
   * though their runs go on: the network is gone, or the machine slept.
   */
  readonly cutOff: Effect.Effect<void>
  /**
   * Moves the queue's time by `ms`, in steps small enough that live processes renew their leases in
   * time. Returns when both processes have
   * polled since and started all that they could. With 0 they only poll.
   */
  advance(ms: number): Effect.Effect<void>
  /** The encoded dead jobs, as an operator finds them. */
  readonly deadLetters: Effect.Effect<readonly Json[], unknown>
  /** Absent where the adapter does not support transactions. */
  readonly transaction?: Database["transaction"]
}

export type QueueCases = Readonly<
  Record<string, (opened: OpenedQueue) => Effect.Effect<void, unknown, Scope.Scope>>
>

/**
 * What every Queue does, beyond the port's own words:
 *
 * - `consume` returns once it is consuming; it goes on until its Scope closes, which interrupts the
 *   runs and waits for them.
 * - A stop is not a failure: the job waits again and the run is not counted. A lost lease is
 *   counted, so a job that kills its worker dies, too.
 * - Of the due jobs the one with the higher priority runs first, then the one that was due first.
 * - The wait before a retry is above 0, grows, and is 10 minutes at most.
 * - A key belongs to one handler. Dead jobs release their key.
 * - A job that the handler can't decode fails like any other and blocks no other. A defect is a
 *   failure.
 * - A live worker keeps its lease, however long the run takes.
 *
 * `open` is called for every case and gives a new, empty queue. `modelRuns`: how many random
 * schedules are tried.
 */
export const queueContract = (
  name: string,
  open: Effect.Effect<OpenedQueue, unknown, Scope.Scope>,
  modelRuns = 100,
): void => {
  const run = (work: QueueCases[string]) =>
    Effect.runPromise(Effect.scoped(Effect.flatMap(open, work)))
  const runAll = (cases: QueueCases, isOffered = (_: OpenedQueue): boolean => true) => {
    for (const [title, work] of Object.entries(cases))
      it(title, ({ skip }) =>
        run((opened) => (isOffered(opened) ? work(opened) : Effect.sync(skip))),
      )
  }
  describe(`queue contract: ${name}`, () => {
    describe("delivery", () => runAll(queueDeliveryCases))
    describe("keys", () => runAll(queueKeyCases))
    describe("failures", () => runAll(queueFailureCases))
    describe("leases and stops", () => runAll(queueLeaseCases))
    describe("transactions", () =>
      runAll(queueTransactionCases, (opened) => opened.transaction !== undefined))
    it(
      "loses nothing and begins nothing too early, over any schedule",
      () => queueModelCase(run, modelRuns),
      120_000,
    )
  })
}
