import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type {
  ModelContext,
  ModelPlan,
  RerankEvent,
  RerankRequest,
  Task,
} from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { ModelId } from "../../../core/services/ids.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { usageOf } from "../../../core/usage.ts"
import { timedTokenize } from "../chat-format/pool.ts"
import type { RunOptions } from "../worker/host.ts"
import type { StageTime } from "../worker/protocol.ts"
import { DocumentScores, type ScoredWindow } from "./document-scores.ts"
import { cpu } from "./evidence.ts"
import { type ReadJob, readDocuments } from "./read-documents.ts"

/** A model that scores sequences of query and document, as an engine of its kind runs them. */
export interface RerankScorer<Input, Event> {
  /** Digest of the files, precision and graph; null where scores can't be repeated. */
  readonly modelDigest: string | null
  /** The longest query, in tokens. */
  readonly contextTokens: number
  /** The longest sequence, in tokens. */
  readonly windowTokens: number
  readonly read: (request: RerankRequest) => ReadJob<Input>
  tokensOf(input: Input): number
  availableFor(
    wait: Pick<RunOptions<never, never>, "priority" | "waitMs">,
  ): Effect.Effect<void, ApiError>
  run<Out>(
    inputs: readonly Input[],
    context: ModelContext,
    options: RunOptions<Event, Out>,
  ): Stream.Stream<Out, ApiError>
  /** The score, 0 to 1, of one of the inputs; undefined: the event has none. */
  scoreIn(event: Event): { readonly index: number; readonly score: number } | undefined
}

export interface RerankServices {
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

/** A document without text meets no query. */
const blankScore = 0

const isTime = (event: { readonly type: string }): event is StageTime => event.type === "time"

/**
 * The rerank task of a scorer. Documents are read in windows, whose best score counts; a request is
 * one search unit, from its first score on, and the tokens of all windows are metered.
 */
export const makeRerankTask = <Input, Event extends { readonly type: string }>(
  { id, clock }: { readonly id: ModelId; readonly clock: Clock },
  scorer: RerankScorer<Input, Event>,
): Task<RerankRequest, RerankEvent> => {
  const windowsOf = Effect.fnUntraced(function* (request: RerankRequest, context: ModelContext) {
    const result = yield* timedTokenize(
      clock,
      context,
      readDocuments(request, scorer.windowTokens, scorer.read(request)),
    )
    if ("windows" in result) return result.windows
    if ("refused" in result)
      return yield* apiError(
        "invalid_request_error",
        `The model's template can't take this query: ${result.refused}`,
        { param: "query" },
      )
    return yield* apiError(
      "context_length_exceeded",
      `The query with its instruction has ${result.queryTooLong} tokens or more; the model's window is ${scorer.contextTokens} tokens.`,
      { param: "query" },
    )
  })
  const runOf = (
    windows: readonly ScoredWindow<Input>[],
    context: ModelContext,
  ): Stream.Stream<RerankEvent, ApiError> => {
    const inputs = windows.flatMap((window) => window.inputs)
    const scores = new DocumentScores(windows)
    let inputTokens = 0
    const translate = (event: Event | StageTime): readonly RerankEvent[] | undefined => {
      if (isTime(event)) {
        context.time(event.stage, event.durationMs)
        return undefined
      }
      const scored = scorer.scoreIn(event)
      if (!scored) return undefined
      inputTokens += scorer.tokensOf(inputs[scored.index]!)
      context.meter(id, usageOf({ inputTokens, searchUnits: 1 }))
      const whole = scores.take(scored.index, scored.score)
      return whole && [whole]
    }
    return scorer.run(inputs, context, {
      account: context.tenant.account,
      priority: context.priority,
      waitMs: Number.POSITIVE_INFINITY,
      timeoutMs: () => context.deadlineMs - clock.nowMs(),
      translate,
    })
  }
  const plan = Effect.fnUntraced(function* (request: RerankRequest, context: ModelContext) {
    yield* scorer.availableFor({ priority: context.priority, waitMs: Number.POSITIVE_INFINITY })
    const windows = yield* windowsOf(request, context)
    context.note?.({ model: scorer.modelDigest, cpu: cpu() })
    const read = new Set(windows.map(({ document }) => document))
    const blank = [...request.documents.keys()].filter((index) => !read.has(index))
    const blanks = Stream.fromIterable(blank.map((index) => ({ index, score: blankScore })))
    const free = Stream.fromEffect(
      Effect.sync(() => context.meter(id, usageOf({ searchUnits: 1 }))),
    ).pipe(Stream.drain)
    const inputTokens = windows
      .flatMap(({ inputs }) => inputs)
      .reduce((sum, input) => sum + scorer.tokensOf(input), 0)
    const planned: ModelPlan<RerankEvent> = {
      bound: usageOf({ inputTokens, searchUnits: 1 }),
      run: Stream.concat(windows.length ? runOf(windows, context) : free, blanks),
    }
    return planned
  })
  return { plan }
}
