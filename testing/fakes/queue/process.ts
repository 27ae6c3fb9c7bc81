import { Cause, type Context, Effect, Exit, Fiber, Schema } from "effect"
import type { JobHandler } from "../../../core/ports/queue.ts"
import type { Entries, Lease } from "./entries.ts"

export interface Consumer {
  readonly handler: JobHandler<unknown>
  readonly context: Context.Context<never>
  /** The fiber is not known yet while it runs its first step. */
  readonly running: Map<Lease, Fiber.Fiber<void, unknown> | undefined>
  isStopping: boolean
}

/** One process that works on the entries. Calls `changed` whenever there may be work to do. */
export const makeProcess = (entries: Entries, changed: () => void) => {
  const consumers = new Set<Consumer>()
  let isCutOff = false

  const report = (consumer: Consumer, lease: Lease, exit: Exit.Exit<void, unknown>): void => {
    if (isCutOff || !entries.holds(lease)) return
    if (Exit.isSuccess(exit)) entries.done(lease)
    else if (consumer.isStopping && Cause.hasInterruptsOnly(exit.cause)) entries.release(lease)
    else entries.failed(lease, Cause.pretty(exit.cause))
  }

  const start = (consumer: Consumer, lease: Lease): void => {
    const { handler, context, running } = consumer
    const ended = (exit: Exit.Exit<void, unknown>) =>
      Effect.sync(() => {
        running.delete(lease)
        report(consumer, lease, exit)
        changed()
      })
    const work = Schema.decodeUnknownEffect(handler.codec)(lease.entry.job).pipe(
      Effect.flatMap((job) => handler.run(job)),
      Effect.onExit(ended),
    )
    running.set(lease, undefined)
    const fiber = Effect.runForkWith(context)(work)
    if (running.has(lease)) running.set(lease, fiber)
  }

  const fill = (consumer: Consumer): void => {
    while (
      !isCutOff &&
      !consumer.isStopping &&
      consumer.running.size < consumer.handler.concurrency
    ) {
      const lease = entries.claim(consumer.handler)
      if (lease === undefined) return
      start(consumer, lease)
    }
  }

  const runs = () => [...consumers].flatMap(({ running }) => [...running])

  return {
    cutOff: (): void => {
      isCutOff = true
    },
    renew: (): void => {
      for (const [lease] of runs()) if (!isCutOff) entries.renew(lease)
    },
    dropLost: (): void => {
      for (const [lease, fiber] of runs()) if (!entries.holds(lease)) fiber?.interruptUnsafe()
    },
    fill: (): void => {
      for (const consumer of consumers) fill(consumer)
    },
    add: (consumer: Consumer): void => {
      consumers.add(consumer)
      changed()
    },
    stop: (consumer: Consumer): Effect.Effect<void> =>
      Effect.suspend(() => {
        consumer.isStopping = true
        const fibers = [...consumer.running.values()].filter((fiber) => fiber !== undefined)
        return Effect.andThen(
          Fiber.interruptAll(fibers),
          Effect.sync(() => void consumers.delete(consumer)),
        )
      }),
  }
}
export type Process = ReturnType<typeof makeProcess>
