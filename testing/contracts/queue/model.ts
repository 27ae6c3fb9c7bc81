import { Effect, Exit, Schema, Scope } from "effect"
import fc from "fast-check"
import { expect } from "vitest"
import { PortError } from "../../../core/errors.ts"
import type { JobHandler, Queue } from "../../../core/ports/queue.ts"
import type { OpenedQueue } from "../queue.ts"
import { longestBackoffMs, makeGate } from "./recorder.ts"

const Job = Schema.Struct({ id: Schema.Int, failures: Schema.Int, slow: Schema.Boolean })

type Step =
  | {
      readonly do: "send"
      readonly failures: number
      readonly slow: boolean
      readonly delayMs: number
      readonly priority: number
      readonly tx: "none" | "commit" | "rollback"
    }
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "restart"; readonly process: 0 | 1 }
  | { readonly do: "let go" }
  | { readonly do: "cut off" }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("send" as const),
      failures: fc.nat(2),
      slow: fc.boolean(),
      delayMs: fc.oneof(fc.constant(0), fc.nat(20_000)),
      priority: fc.integer({ min: -2, max: 2 }),
      tx: fc.constantFrom("none", "commit", "rollback"),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.nat(30_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("restart" as const),
      process: fc.constantFrom(0 as const, 1 as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("let go" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cut off" as const) }) },
)

const concurrency = 2
/** Two failures, one lost lease, and the run that succeeds. */
const attempts = 4

/** What a schedule shows from outside: which jobs ran when, and how they ended. */
const makeObserver = () => {
  const dueMs = new Map<number, number>()
  const runs = new Map<number, number>()
  const failed = new Map<number, number>()
  const done = new Set<number>()
  const faults: string[] = []
  // an upper bound of the queue's time while it works
  let nowMs = 0
  let gate = makeGate()
  let isOver = false

  const handlerOf = (): JobHandler<typeof Job.Type> => {
    let running = 0
    const work = ({ id, failures, slow }: typeof Job.Type) =>
      Effect.gen(function* () {
        runs.set(id, (runs.get(id) ?? 0) + 1)
        if (nowMs < (dueMs.get(id) ?? Number.POSITIVE_INFINITY))
          faults.push(`${id} began before it was due, or was never sent`)
        if (running > concurrency) faults.push(`${running} at once`)
        if (slow && !isOver) yield* gate.pass
        failed.set(id, (failed.get(id) ?? 0) + 1)
        if (failed.get(id)! <= failures)
          return yield* new PortError({ port: "test", message: "not yet" })
        done.add(id)
      })
    const run = (job: typeof Job.Type) =>
      Effect.suspend(() => {
        running++
        return Effect.ensuring(
          work(job),
          Effect.sync(() => running--),
        )
      })
    return { name: "model", codec: Job, concurrency, leaseMs: 10_000, attempts, run }
  }

  return {
    dueMs,
    runs,
    done,
    faults,
    handlerOf,
    now: () => nowMs,
    pass: (ms: number) => {
      nowMs += ms
    },
    letGo: (forGood: boolean) =>
      Effect.suspend(() => {
        const { open } = gate
        gate = makeGate()
        isOver = forGood
        return open
      }),
  }
}
type Observer = ReturnType<typeof makeObserver>

const send = (
  opened: OpenedQueue,
  observer: Observer,
  id: number,
  { tx: ending, ...move }: Extract<Step, { do: "send" }>,
) =>
  Effect.gen(function* () {
    const put = (tx?: Parameters<Queue["send"]>[3]) =>
      opened.other.send(
        observer.handlerOf(),
        { id, failures: move.failures, slow: move.slow },
        move,
        tx,
      )
    const isKept = ending !== "rollback"
    if (isKept) observer.dueMs.set(id, observer.now() + move.delayMs)
    if (ending === "none" || opened.transaction === undefined)
      return isKept ? yield* put() : undefined
    yield* Effect.exit(
      opened.transaction((tx) =>
        Effect.andThen(put(tx), isKept ? Effect.void : Effect.fail("rolled back")),
      ),
    )
  })

/** Two processes that can be stopped and started again. */
const makeWorkers = (opened: OpenedQueue, observer: Observer) =>
  Effect.gen(function* () {
    const scopes: Scope.Closeable[] = []
    const outer = yield* Effect.scope
    const start = (process: 0 | 1) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        scopes[process] = scope
        yield* (process === 0 ? opened.queue : opened.other)
          .consume(observer.handlerOf())
          .pipe(Scope.provide(scope))
      })
    yield* Scope.addFinalizer(
      outer,
      Effect.forEach(scopes, (scope) => Scope.close(scope, Exit.void)),
    )
    yield* start(0)
    yield* start(1)
    return (process: 0 | 1) =>
      Effect.andThen(Scope.close(scopes[process]!, Exit.void), start(process))
  })

const play = (
  opened: OpenedQueue,
  observer: Observer,
  restart: (process: 0 | 1) => Effect.Effect<void, PortError>,
  move: Step,
  id: number,
) => {
  if (move.do === "send") return send(opened, observer, id, move)
  if (move.do === "restart") return restart(move.process)
  if (move.do === "let go") return observer.letGo(false)
  if (move.do === "cut off") return opened.cutOff
  observer.pass(move.ms)
  return opened.advance(move.ms)
}

const finish = (opened: OpenedQueue, observer: Observer) =>
  Effect.gen(function* () {
    yield* observer.letGo(true)
    for (let tries = 0; tries < 40 && observer.done.size < observer.dueMs.size; tries++) {
      const ms = Math.min(longestBackoffMs, 10_000 * 2 ** tries)
      observer.pass(ms)
      yield* opened.advance(ms)
    }
  })

const playAll = (moves: readonly Step[]) => (opened: OpenedQueue) =>
  Effect.gen(function* () {
    const observer = makeObserver()
    const restart = yield* makeWorkers(opened, observer)
    for (const [id, move] of moves.entries()) yield* play(opened, observer, restart, move, id)
    yield* finish(opened, observer)
    expect(observer.faults).toEqual([])
    expect([...observer.done].sort()).toEqual([...observer.dueMs.keys()].sort())
    expect(yield* opened.deadLetters).toEqual([])
    expect([...observer.runs.keys()].filter((id) => !observer.dueMs.has(id))).toEqual([])
  })

export const queueModelCase = (
  run: (work: (opened: OpenedQueue) => Effect.Effect<void, unknown, Scope.Scope>) => Promise<void>,
  numRuns: number,
): Promise<void> =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), (moves) => run(playAll(moves))),
    { numRuns },
  )
