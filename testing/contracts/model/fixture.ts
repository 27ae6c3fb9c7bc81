import { Cause, Deferred, Effect, Exit, Fiber, Option, Stream } from "effect"
import { afterAll, beforeAll, expect } from "vitest"
import { type ApiError, isApiError } from "../../../core/errors.ts"
import type {
  LoadedModel,
  ModelContext,
  ModelPlan,
  Task,
  TaskName,
} from "../../../core/ports/model.ts"
import type { ModelId } from "../../../core/services/ids.ts"
import { noUsage, type Usage } from "../../../core/usage.ts"

const keys = Object.keys(noUsage) as (keyof Usage)[]

export interface OpenedModel<T extends TaskName> {
  /** The id that the model was opened with and meters under. */
  readonly id: ModelId
  readonly loaded: LoadedModel<T>
  close?(): Promise<void>
}

/** The context of one call, and what the model reported to it. */
export interface RecordedCall {
  readonly context: ModelContext
  /** The last usage report. */
  used(): Usage
  reports(): number
  /**
   * Violations: reports for another model, below an earlier one or not in whole numbers; stages
   * without a name.
   */
  readonly wrong: readonly string[]
}

let calls = 0

export const recordCall = (id: ModelId): RecordedCall => {
  const wrong: string[] = []
  let last = noUsage
  let count = 0
  const check = (fits: boolean, problem: string) => {
    if (!fits) wrong.push(problem)
  }
  const meter = (model: ModelId, soFar: Usage) => {
    check(model === id, `reports for '${model}'`)
    for (const key of keys)
      check(
        Number.isInteger(soFar[key]) && soFar[key] >= last[key],
        `${key} goes from ${last[key]} to ${soFar[key]}`,
      )
    last = soFar
    count++
  }
  const context: ModelContext = {
    callId: `contract-${++calls}`,
    tenant: { account: "acct_contract", mode: "live" },
    priority: "realtime",
    deadlineMs: Date.now() + 600_000,
    meter,
    time: (stage, durationMs) =>
      check(
        /^[a-z]+$/.test(stage) && durationMs >= 0,
        `the stage '${stage}' took ${durationMs} ms`,
      ),
  }
  return { context, used: () => last, reports: () => count, wrong }
}

const expectWithin = ({ wrong, used }: RecordedCall, bound: Usage): void => {
  expect(wrong).toEqual([])
  for (const key of keys)
    expect(used()[key], `${key} stays within the bound`).toBeLessThanOrEqual(bound[key])
}

/** Plans and runs to the end. Expects no report before the run, and usage within the bound. */
export const runWhole = async <Event>(
  id: ModelId,
  plan: (context: ModelContext) => Effect.Effect<ModelPlan<Event>, ApiError>,
) => {
  const call = recordCall(id)
  const { bound, run } = await Effect.runPromise(plan(call.context))
  expect(call.reports(), "a plan has no side effect").toBe(0)
  const events = await Effect.runPromise(Stream.runCollect(run))
  expectWithin(call, bound)
  return { events, bound, used: call.used() }
}

/** Returns the error that a plan fails with, if any. */
export const refusalOf = async <Event>(
  plan: Effect.Effect<ModelPlan<Event>, ApiError>,
): Promise<ApiError | undefined> => {
  const exit = await Effect.runPromiseExit(plan)
  const error = Exit.isFailure(exit)
    ? Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    : undefined
  return isApiError(error) ? error : undefined
}

/** Interrupts a run after its first event, and expects no reports while `after` runs. */
const expectStops = async <Event>(
  id: ModelId,
  plan: (context: ModelContext) => Effect.Effect<ModelPlan<Event>, ApiError>,
  after: () => Promise<unknown>,
): Promise<void> => {
  const call = recordCall(id)
  const { bound, run } = await Effect.runPromise(plan(call.context))
  await Effect.runPromise(
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const reader = yield* Effect.forkChild(
        Stream.runForEach(run, () => Deferred.succeed(begun, undefined)),
      )
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(reader)
    }),
  )
  const reports = call.reports()
  await after()
  expect(call.reports(), "an interrupted run works no more").toBe(reports)
  expectWithin(call, bound)
}

/** Stops reading after the first event, and expects no reports while `after` runs. */
const expectStopsWhenLeft = async <Event>(
  id: ModelId,
  plan: (context: ModelContext) => Effect.Effect<ModelPlan<Event>, ApiError>,
  after: () => Promise<unknown>,
): Promise<void> => {
  const call = recordCall(id)
  const { run } = await Effect.runPromise(plan(call.context))
  await Effect.runPromise(Stream.runDrain(Stream.take(run, 1)))
  const reports = call.reports()
  await after()
  expect(call.reports(), "a run that nobody reads works no more").toBe(reports)
}

/** Returns a text that exceeds a window of this many tokens, whatever the tokenizer. */
const textLongerThan = (tokens: number): string => "kata yang panjang sekali, ".repeat(tokens)

/** A model that a suite opens once for all its cases, and what the cases do with it. */
export const openOnce = <Request, Event>(
  open: () => Promise<{
    readonly id: ModelId
    readonly loaded: Omit<LoadedModel, "task"> & { readonly task: Task<Request, Event> }
    close?(): Promise<void>
  }>,
) => {
  let opened: Awaited<ReturnType<typeof open>>
  beforeAll(async () => {
    opened = await open()
  })
  afterAll(() => opened?.close?.())
  const plan = (request: Request) => (context: ModelContext) =>
    opened.loaded.task.plan(request, context)
  return {
    loaded: () => opened.loaded,
    /** Plans and runs to the end. */
    ask: (request: Request) => runWhole(opened.id, plan(request)),
    /** The error that the plan fails with, if any. */
    refusal: (request: Request) => refusalOf(plan(request)(recordCall(opened.id).context)),
    /** Interrupts one run and leaves another; `after` must find the model idle. */
    expectStops: async (request: Request, after: () => Promise<unknown>) => {
      await expectStops(opened.id, plan(request), after)
      await expectStopsWhenLeft(opened.id, plan(request), after)
    },
    /** A text that exceeds the window. */
    long: () => textLongerThan(opened.loaded.contextTokens),
  }
}
