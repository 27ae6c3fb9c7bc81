import { Effect, Stream } from "effect"
import { type ApiError, statusOf } from "../../../core/errors.ts"
import type { EngineStats } from "../../../core/ports/model.ts"
import {
  type EmbedJobEvent,
  type EmbedJobRequest,
  type EncoderInfo,
  type EncoderInput,
  tokensOf,
} from "../encoding/embed-job.ts"
import type { Engine, RunOptions } from "../worker/host.ts"
import type { Priority, StageTime } from "../worker/protocol.ts"

export type Encoder = Engine<EmbedJobRequest, EmbedJobEvent, EncoderInfo>

/** Several engines that serve the same model. */
export interface EncoderPool {
  readonly info: EncoderInfo
  /** Fails when no engine takes a request. */
  readonly availableFor: Encoder["availableFor"]
  /** An encoder keeps no keys and values: only how often an engine was started again. */
  stats(): EngineStats
  /**
   * Embeds the texts of a request, balanced over the engines; an event's `index` is that in
   * `texts`.
   */
  run<Out>(
    texts: readonly EncoderInput[],
    options: RunOptions<EmbedJobEvent, Out>,
  ): Stream.Stream<Out, ApiError>
}

/** An engine, and the number of tokens assigned to it that are not embedded yet, by priority. */
interface Member {
  readonly engine: Encoder
  readonly tokens: Record<Priority, number>
}

/** The part of a request that one engine embeds; `tokens`: those that are not embedded yet. */
interface Share {
  readonly member: Member
  /** Indices of its texts in the request. */
  readonly indices: readonly number[]
  tokens: number
}

/**
 * Compares the load that a request of this priority waits for: real-time work waits for real-time
 * work only. Ties go to the engine with less batch work.
 */
const hasLess = (priority: Priority, a: Member, b: Member): boolean => {
  const waits = ({ tokens }: Member) =>
    priority === "realtime" ? tokens.realtime : tokens.realtime + tokens.batch
  return waits(a) < waits(b) || (waits(a) === waits(b) && a.tokens.batch < b.tokens.batch)
}

/**
 * Assigns each text, the longest first, to the engine with the least load (longest processing time
 * first, Graham 1969). The assigned tokens count as load at once.
 */
export const balance = (
  members: readonly Member[],
  texts: readonly EncoderInput[],
  priority: Priority,
): readonly Share[] => {
  const given = new Map(members.map((member) => [member, { indices: [] as number[], tokens: 0 }]))
  const byLength = texts
    .map((_, index) => index)
    .sort((a, b) => tokensOf(texts[b]!) - tokensOf(texts[a]!))
  for (const index of byLength) {
    const member = members.reduce((best, other) => (hasLess(priority, other, best) ? other : best))
    const share = given.get(member)!
    share.indices.push(index)
    share.tokens += tokensOf(texts[index]!)
    member.tokens[priority] += tokensOf(texts[index]!)
  }
  return [...given]
    .filter(([, { indices }]) => indices.length > 0)
    .map(([member, share]) => ({ member, ...share }))
}

const answered = (share: Share, tokens: number, priority: Priority): void => {
  share.tokens -= tokens
  share.member.tokens[priority] -= tokens
}

/**
 * Makes a filter of stage times for each engine of a request: as they run in parallel, together
 * they report the longest duration of each stage.
 */
export const makeStageTimes = () => {
  const longestMs = new Map<string, number>()
  return () => {
    const ownMs = new Map<string, number>()
    return (event: StageTime): StageTime => {
      const sumMs = (ownMs.get(event.stage) ?? 0) + event.durationMs
      const knownMs = longestMs.get(event.stage) ?? 0
      ownMs.set(event.stage, sumMs)
      longestMs.set(event.stage, Math.max(sumMs, knownMs))
      return { ...event, durationMs: Math.max(0, sumMs - knownMs) }
    }
  }
}

/** Runs streams side by side; one alone needs no fiber and queue of its own. */
export const merged = <A, E>(streams: readonly Stream.Stream<A, E>[]): Stream.Stream<A, E> => {
  const [first = Stream.empty, ...others] = streams
  return others.length ? Stream.mergeAll(streams, { concurrency: "unbounded" }) : first
}

const runShare = <Out>(
  share: Share,
  texts: readonly EncoderInput[],
  options: RunOptions<EmbedJobEvent, Out>,
  stageTime: (event: StageTime) => StageTime,
) => {
  const translate: typeof options.translate = (event) => {
    if (event.type === "time") return options.translate(stageTime(event))
    const index = share.indices[event.index]!
    answered(share, tokensOf(texts[index]!), options.priority)
    return options.translate({ ...event, index })
  }
  return share.member.engine.run(
    { texts: share.indices.map((index) => texts[index]!) },
    { ...options, translate },
  )
}

// a busy engine takes a request sooner than one that loads, and that sooner than one that is given
// up
const soonest = [429, 503]
const rank = (error: ApiError): number =>
  soonest.includes(statusOf(error)) ? soonest.indexOf(statusOf(error)) : soonest.length

/**
 * Returns the engines that accept a request; when none does, fails with the refusal of the one that
 * is likeliest to accept it soon.
 */
const open = Effect.fnUntraced(function* (
  members: readonly Member[],
  request: Parameters<Encoder["availableFor"]>[0],
): Effect.fn.Return<readonly Member[], ApiError> {
  const ready: Member[] = []
  const refused: ApiError[] = []
  for (const member of members)
    yield* Effect.match(member.engine.availableFor(request), {
      onSuccess: () => void ready.push(member),
      onFailure: (error) => void refused.push(error),
    })
  if (ready.length) return ready
  return yield* refused.reduce((best, other) => (rank(other) < rank(best) ? other : best))
})

const memberOf = (engine: Encoder): Member => ({ engine, tokens: { realtime: 0, batch: 0 } })

/**
 * Makes a pool of engines. Threads that share a forward pass wait for the slowest of them at every
 * operator; several engines of few threads each do not. `solo`, with all threads, reads a text that
 * comes alone while nothing else is read.
 */
export const makeEncoderPool = (engines: readonly Encoder[], solo?: Encoder): EncoderPool => {
  const members = engines.map(memberOf)
  const alone = solo ? [memberOf(solo)] : []
  const all = [...alone, ...members]
  const isIdle = () => all.every(({ tokens }) => tokens.realtime + tokens.batch === 0)
  const openFor = (texts: readonly EncoderInput[], request: Parameters<typeof open>[1]) =>
    texts.length === 1 && alone.length > 0 && isIdle()
      ? Effect.catch(open(alone, request), () => open(members, request))
      : open(members, request)
  return {
    info: engines[0]!.info,
    availableFor: (request) => Effect.asVoid(open(members, request)),
    stats: () => ({
      restarts: all.reduce((sum, { engine }) => sum + (engine.stats().restarts ?? 0), 0),
    }),
    run: (texts, options) => {
      const { priority } = options
      const balanced = Effect.acquireRelease(
        Effect.map(openFor(texts, options), (ready) => balance(ready, texts, priority)),
        (shares) =>
          Effect.sync(() => {
            for (const share of shares) answered(share, share.tokens, priority)
          }),
      )
      return Stream.unwrap(
        Effect.map(balanced, (shares) => {
          const filter = makeStageTimes()
          return merged(shares.map((share) => runShare(share, texts, options, filter())))
        }),
      )
    },
  }
}
