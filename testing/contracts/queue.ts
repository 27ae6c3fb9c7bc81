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
  /** Empty, as one process sees it. */
  readonly queue: Queue
  /** As another process sees it. */
  readonly other: Queue
  /** From now on the consumers of `queue` (not those of `other`) can renew, take and report nothing, though their runs go on: the network is gone, or the machine slept. */
  readonly cutOff: Effect.Effect<void>
  /**
   * Moves the queue's time by `ms`, in steps so small that living processes renew their leases in time. Comes back when both processes have
   * looked for work since, and begun all that they could. With 0 they only look.
   */
  advance(ms: number): Effect.Effect<void>
  /** The encoded jobs of the dead, as an operator finds them. */
  readonly deadLetters: Effect.Effect<readonly Json[], unknown>
  /** Absent where the adapter knows no transactions. */
  readonly transaction?: Database["transaction"]
}

export type QueueCases = Readonly<
  Record<string, (opened: OpenedQueue) => Effect.Effect<void, unknown, Scope.Scope>>
>

/**
 * What every Queue does, beyond the port's own words:
 *
 * - `consume` comes back once it works; the work goes on until its Scope closes, which interrupts the runs and waits for them.
 * - A stop is no failure: the job waits again and the run does not count. A lost lease does count, so a job that kills its worker dies too.
 * - Among jobs that are due the higher priority goes first, then the one that is due longer.
 * - The wait before a retry is above 0, grows, and is 10 minutes at most.
 * - A key is one handler's own. The dead don't hold their key.
 * - A job that the handler can't decode fails like any other, and stops nobody. A defect is a failure.
 * - A worker that lives keeps its lease, however long the run is.
 *
 * `open` gives a fresh one for every case. `modelRuns`: how many random schedules are tried.
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
