import { Effect, Schema } from "effect"
import { expect } from "vitest"
import { PortError } from "../../../core/errors.ts"
import type { JobHandler } from "../../../core/ports/queue.ts"
import type { OpenedQueue, QueueCases } from "../queue.ts"
import { eventually, longestBackoffMs, type Recorder, record } from "./recorder.ts"

const broken = Effect.fail(new PortError({ port: "test", message: "broken" }))

/** Returns the time until the next run started, to within a third. */
const waitForRun = ({ advance }: OpenedQueue, { began }: Recorder) =>
  Effect.gen(function* () {
    const seen = began.length
    let waitedMs = 0
    while (began.length === seen && waitedMs <= longestBackoffMs) {
      const stepMs = Math.max(50, Math.ceil(waitedMs / 3))
      yield* advance(stepMs)
      waitedMs += stepMs
    }
    return waitedMs
  })

const failUntilDead = (opened: OpenedQueue, recorder: Recorder, job: string) =>
  Effect.gen(function* () {
    yield* opened.queue.send(recorder.handler, job)
    for (let n = 0; n < recorder.handler.attempts; n++) yield* opened.advance(longestBackoffMs)
  })

export const queueFailureCases: QueueCases = {
  "tries again after waits that grow": (opened) =>
    Effect.gen(function* () {
      const recorder = record({ attempts: 5 }, (_, nthRun) => (nthRun < 5 ? broken : Effect.void))
      yield* opened.queue.consume(recorder.handler)
      yield* opened.queue.send(recorder.handler, "flaky")
      yield* eventually(opened, () => expect(recorder.began).toHaveLength(1))
      yield* opened.advance(0)
      expect(recorder.began).toHaveLength(1)
      const waitsMs: number[] = []
      for (let retry = 0; retry < 4; retry++) waitsMs.push(yield* waitForRun(opened, recorder))
      expect(Math.max(...waitsMs)).toBeLessThanOrEqual(longestBackoffMs * 1.4)
      expect(waitsMs[3]).toBeGreaterThan(waitsMs[0]!)
      yield* eventually(opened, () => expect(recorder.succeeded).toEqual(["flaky"]))
      expect(yield* opened.deadLetters).toEqual([])
    }),

  "does not hold up others while one waits for its retry": (opened) =>
    Effect.gen(function* () {
      const { handler, succeeded } = record({}, (job) => (job === "bad" ? broken : Effect.void))
      yield* opened.queue.send(handler, "bad", { priority: 5 })
      yield* opened.queue.send(handler, "good")
      yield* opened.queue.consume(handler)
      yield* eventually(opened, () => expect(succeeded).toEqual(["good"]))
    }),

  "buries what failed as often as it may, and keeps it": (opened) =>
    Effect.gen(function* () {
      const recorder = record({ attempts: 3 }, () => broken)
      yield* opened.queue.consume(recorder.handler)
      yield* failUntilDead(opened, recorder, "hopeless")
      yield* opened.advance(10 * longestBackoffMs)
      expect(recorder.began).toEqual(["hopeless", "hopeless", "hopeless"])
      expect(yield* opened.deadLetters).toEqual(["hopeless"])
    }),

  "runs a handler of one attempt once": (opened) =>
    Effect.gen(function* () {
      const recorder = record({ attempts: 1 }, () => broken)
      yield* opened.queue.consume(recorder.handler)
      yield* failUntilDead(opened, recorder, "once")
      expect(recorder.began).toEqual(["once"])
      expect(yield* opened.deadLetters).toEqual(["once"])
    }),

  "takes a defect as a failure": (opened) =>
    Effect.gen(function* () {
      const recorder = record({ attempts: 2 }, (job) =>
        job === "bug" ? Effect.die(new Error("a bug")) : Effect.void,
      )
      yield* opened.queue.consume(recorder.handler)
      yield* failUntilDead(opened, recorder, "bug")
      yield* opened.queue.send(recorder.handler, "next")
      yield* eventually(opened, () => expect(recorder.succeeded).toEqual(["next"]))
      expect(recorder.began).toEqual(["bug", "bug", "next"])
    }),

  "is not stopped by a job that the handler can't decode": (opened) =>
    Effect.gen(function* () {
      const recorder = record({ attempts: 2 })
      const older: JobHandler<number> = {
        ...recorder.handler,
        codec: Schema.Finite,
        run: () => Effect.void,
      }
      yield* opened.queue.send(older, 7, { priority: 5 })
      yield* opened.queue.consume(recorder.handler)
      yield* failUntilDead(opened, recorder, "sound")
      yield* eventually(opened, () => expect(recorder.succeeded).toEqual(["sound"]))
      expect(yield* opened.deadLetters).toEqual([7])
    }),
}
