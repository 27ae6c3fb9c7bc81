import { Effect, Queue } from "effect"
import { definePlugin, provide, repeat, resolve, resolveAll, Tokens } from "../../core/index.ts"
import { queueCheck } from "./check.ts"
import { drive } from "./driver.ts"
import { measureJobs } from "./job-counts.ts"
import { migrations } from "./migrations.ts"
import { makeQueue } from "./queue.ts"
import { Settings } from "./settings.ts"

export const plugin = definePlugin<Settings>({
  name: "queue-postgres",
  api: 1,
  about:
    "Background jobs in PostgreSQL: leases, retries, priorities, dead letters; shared by all servers and workers.",
  settings: Settings,
  needs: [Tokens.database, Tokens.clock, Tokens.log, Tokens.metrics, Tokens.deployment],
  provides: [Tokens.queue, Tokens.consistencyChecks],
  migrations,
  create: ({ pollMs, keepDeadDays }) => ({
    start: (container) =>
      Effect.gen(function* () {
        const log = resolve(container, Tokens.log).with({ plugin: "queue-postgres" })
        const clock = resolve(container, Tokens.clock)
        const database = resolve(container, Tokens.database)
        const woken = yield* Queue.sliding<true>(1)
        const { queue, worker, rows } = makeQueue({
          database,
          clock,
          log,
          metrics: resolve(container, Tokens.metrics),
          random: Math.random,
          wake: () => void Queue.offerUnsafe(woken, true),
        })
        const metrics = resolve(container, Tokens.metrics)
        const handlers = () => resolveAll(container, Tokens.jobHandlers).map(({ name }) => name)
        provide(container, Tokens.queue, queue)
        provide(container, Tokens.consistencyChecks, queueCheck({ database, clock, handlers }))
        if (resolve(container, Tokens.deployment).mode !== "server") return
        yield* repeat(
          log,
          {
            event: "queue.measure_failed",
            message: "background jobs could not be counted",
            everyMs: 5_000,
          },
          measureJobs({ database, clock, metrics, handlers }),
        )
        yield* drive(worker, woken, { clock, log, pollMs })
        yield* repeat(
          log,
          {
            event: "queue.sweep_failed",
            message: "old dead letters could not be deleted",
            everyMs: 3_600_000,
          },
          Effect.map(rows.sweep(keepDeadDays * 86_400_000), (letters) => {
            if (letters > 0)
              log.info("queue.dead_letters_swept", "old dead letters were deleted", { letters })
          }),
        )
      }),
  }),
})
