import { Cause, Effect, Queue, Stream } from "effect"
import { type ApiError, apiError } from "../../../../core/errors.ts"
import type { LoadedModel } from "../../../../core/ports/model.ts"
import { fakeClock, fakeLog, fakeWorkers } from "../../../../testing/index.ts"
import { imageAbilities } from "../../open-image.ts"
import { makeImageTask } from "../../tasks/image-task.ts"
import type { Engine } from "../../worker/host.ts"
import { Scheduler } from "../../worker/scheduler.ts"
import type { Stepped } from "../../worker/stepped.ts"
import type { ImageInfo, ImageJobEvent, ImageJobRequest } from "../engine/image-job.ts"
import { imageEngine } from "../engine/open-image-engine.ts"
import type { ImageModel } from "../model.ts"

export type LocalEngine = Engine<ImageJobRequest, ImageJobEvent, ImageInfo>

/** Runs a model in this thread, by the scheduler that runs it in its own. */
export const localEngine = (model: ImageModel, slots = 2): LocalEngine => {
  const engine = imageEngine(model)
  const ends = new Map<number, (error?: ApiError) => void>()
  const end = (id: number, error?: ApiError) => {
    ends.get(id)?.(error)
    ends.delete(id)
  }
  const scheduler = new Scheduler<Stepped>(
    engine.runner,
    { slots, capacity: Number.POSITIVE_INFINITY, nowMs: () => performance.now() },
    {
      done: (id) => end(id),
      failed: (id, cause) => end(id, apiError("backend_error", String(cause))),
      busy: (id) => end(id, apiError("backend_busy")),
    },
  )
  let nextId = 0
  return {
    info: engine.info,
    available: Effect.void,
    availableFor: () => Effect.void,
    stats: () => ({}),
    servedBy: () => "this thread",
    run: (job, { account, priority, waitMs, translate }) =>
      Stream.callback((out) =>
        Effect.gen(function* () {
          const id = nextId++
          ends.set(id, (error) =>
            error ? Queue.failCauseUnsafe(out, Cause.fail(error)) : Queue.endUnsafe(out),
          )
          yield* Effect.addFinalizer(() =>
            Effect.sync(() => {
              if (ends.delete(id)) scheduler.cancel(id)
            }),
          )
          const emit = (event: ImageJobEvent) => {
            for (const translated of translate(event) ?? []) Queue.offerUnsafe(out, translated)
          }
          const start = () => engine.start(job, emit)
          scheduler.submit({ id, account, priority, waitMs, size: 0, start })
        }),
      ),
  }
}

/** A model as the catalogue has it, in this thread. */
export const imageModelOf = (model: ImageModel, slots?: number): LoadedModel<"image"> => {
  const engine = localEngine(model, slots)
  const { sources, adapters } = engine.info
  return {
    ...imageAbilities(sources !== "none"),
    task: makeImageTask({
      id: "m",
      engine,
      queueWaitMs: 60_000,
      workers: fakeWorkers(),
      clock: fakeClock(),
      log: fakeLog(),
    }),
    contextTokens: 1_000,
    adapters,
    servedBy: "this thread",
  }
}
