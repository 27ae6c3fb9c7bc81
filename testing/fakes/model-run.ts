import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { ModelContext } from "../../core/ports/model.ts"
import type { ModelId } from "../../core/services/ids.ts"
import type { Usage } from "../../core/usage.ts"

/** What happened to one `run` of a fake model. States: running -> done | failed | cancelled. */
export interface FakeRun<Request> {
  readonly request: Request
  readonly context: ModelContext
  state: "running" | "done" | "failed" | "cancelled"
  /** The number of completed steps. */
  steps: number
}

/** How a fake works, step by step. */
export interface FakePace {
  /** Runs before each step: `Effect.never` hangs there, a Latch waits. */
  readonly before?: (step: number) => Effect.Effect<void, ApiError>
  /** Makes `plan` fail with this error, as a busy model does. */
  readonly refuse?: ApiError
  /** Keeps no record of runs, for servers that run for long. */
  readonly forgets?: true
  /** The whole answer in one step, so that a benchmark measures the server and not the fake. */
  readonly atOnce?: boolean
}

/** One step: its events, and the cumulative usage after it. */
export interface FakeStep<Event> {
  readonly events: readonly Event[]
  readonly usage: Usage
}

/** By a loop, as `flatMap` of V8 is slow. */
const eventsOf = <Event>(steps: readonly FakeStep<Event>[]): readonly Event[] => {
  const all: Event[] = []
  for (const { events } of steps) all.push(...events)
  return all
}

/**
 * Runs the steps in order: meters each before it emits its events, and records how the run ended.
 */
export const runSteps = <Request, Event>(
  runs: FakeRun<Request>[],
  id: ModelId,
  pace: FakePace,
  request: Request,
  context: ModelContext,
  made: readonly FakeStep<Event>[],
): Stream.Stream<Event, ApiError> =>
  Stream.suspend(() => {
    if (pace.atOnce && pace.forgets && !pace.before) {
      context.meter(id, made.at(-1)!.usage)
      return Stream.fromArray(eventsOf(made))
    }
    const steps = pace.atOnce ? [{ events: eventsOf(made), usage: made.at(-1)!.usage }] : made
    const run: FakeRun<Request> = { request, context, state: "running", steps: 0 }
    if (!pace.forgets) runs.push(run)
    const step = ({ events, usage }: FakeStep<Event>, index: number) =>
      Effect.gen(function* () {
        yield* pace.before?.(index) ?? Effect.void
        context.meter(id, usage)
        run.steps = index + 1
        if (index === steps.length - 1) run.state = "done"
        return events
      })
    const fail = Effect.sync(() => {
      run.state = "failed"
    })
    const end = Effect.sync(() => {
      if (run.state === "running") run.state = "cancelled"
    })
    return Stream.fromIterable(steps.entries()).pipe(
      Stream.mapEffect(([index, one]) => step(one, index)),
      Stream.flattenIterable,
      Stream.onError((cause) =>
        cause.reasons.some((reason) => reason._tag === "Fail") ? fail : Effect.void,
      ),
      Stream.ensuring(end),
    )
  })

/** A token of the fakes is a run of non-space characters, or of spaces before one. */
export const fakeTokens = (text: string): readonly string[] => text.match(/\s*\S+|\s+$/g) ?? []

export const refused = (pace: FakePace): Effect.Effect<void, ApiError> =>
  pace.refuse ? Effect.fail(pace.refuse) : Effect.void

export const noMedia = (what: string): ApiError =>
  apiError("unsupported_parameter", `This model takes no ${what}.`, { param: "input" })
