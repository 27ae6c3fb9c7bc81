import { Effect, Exit, Stream } from "effect"
import type { ApiError } from "../../../core/errors.ts"
import type { Engine, RunOptions } from "../engine/engine-host.ts"
import type { Priority } from "../engine/protocol.ts"
import type { BertInfo, EmbedJobEvent, EmbedJobRequest } from "./embed-job.ts"

export type Encoder = Engine<EmbedJobRequest, EmbedJobEvent, BertInfo>

/** Engines that have the same model, as one. */
export interface EncoderTeam {
  readonly info: BertInfo
  /** Fails when no engine takes a request, as the first of them does. */
  readonly availableFor: Encoder["availableFor"]
  /** The texts of a request, dealt out to those that have least to do; an event's `index` is that in `texts`. */
  run<Out>(texts: readonly Int32Array[], options: RunOptions<EmbedJobEvent, Out>): Stream.Stream<Out, ApiError>
}

/** An engine, and how many tokens it was given that are not answered yet. */
interface Member {
  readonly engine: Encoder
  readonly tokens: Record<Priority, number>
}

interface Share {
  readonly member: Member
  /** Of texts. */
  readonly indices: readonly number[]
  readonly tokens: number
}

/** Real time waits only for real time; of equals, who has least of all. */
const hasLess = (priority: Priority, a: Member, b: Member): boolean => {
  const waits = ({ tokens }: Member) => (priority === "realtime" ? tokens.realtime : tokens.realtime + tokens.batch)
  return waits(a) < waits(b) || (waits(a) === waits(b) && a.tokens.batch < b.tokens.batch)
}

/** The longest first, each to who has least. The shares count as given at once. */
export const deal = (members: readonly Member[], texts: readonly Int32Array[], priority: Priority): readonly Share[] => {
  const given = new Map(members.map((member) => [member, { indices: [] as number[], tokens: 0 }]))
  const byLength = texts.map((_, index) => index).sort((a, b) => texts[b]!.length - texts[a]!.length)
  for (const index of byLength) {
    const member = members.reduce((best, other) => (hasLess(priority, other, best) ? other : best))
    const share = given.get(member)!
    share.indices.push(index)
    share.tokens += texts[index]!.length
    member.tokens[priority] += texts[index]!.length
  }
  return [...given].filter(([, { indices }]) => indices.length > 0).map(([member, share]) => ({ member, ...share }))
}

const takeBack = (shares: readonly Share[], priority: Priority): void => {
  for (const { member, tokens } of shares) member.tokens[priority] -= tokens
}

/** A step that several threads share waits for the slowest of them at every operator; engines of few threads side by side don't. */
export const makeEncoderTeam = (engines: readonly Encoder[]): EncoderTeam => {
  const members = engines.map((engine): Member => ({ engine, tokens: { realtime: 0, batch: 0 } }))
  const open = (request: Parameters<Encoder["availableFor"]>[0]): Effect.Effect<readonly Member[], ApiError> =>
    Effect.gen(function* () {
      const asked = yield* Effect.forEach(members, (member) => Effect.map(Effect.exit(member.engine.availableFor(request)), (exit) => ({ member, exit })))
      const ready = asked.filter(({ exit }) => Exit.isSuccess(exit)).map(({ member }) => member)
      if (!ready.length) yield* asked[0]!.exit
      return ready
    })
  const runShare = <Out>({ member, indices }: Share, texts: readonly Int32Array[], options: RunOptions<EmbedJobEvent, Out>) => {
    const translate: typeof options.translate = (event) => options.translate(event.type === "vector" ? { ...event, index: indices[event.index]! } : event)
    return member.engine.run({ texts: indices.map((index) => texts[index]!) }, { ...options, translate })
  }
  return {
    info: engines[0]!.info,
    availableFor: (request) => Effect.asVoid(open(request)),
    run: (texts, options) => {
      const { priority } = options
      const dealt = Effect.acquireRelease(
        Effect.map(open(options), (ready) => deal(ready, texts, priority)),
        (shares) => Effect.sync(() => takeBack(shares, priority)),
      )
      return Stream.unwrap(
        Effect.map(dealt, (shares) => {
          const [first, ...others] = shares.map((share) => runShare(share, texts, options))
          return others.length ? Stream.mergeAll([first!, ...others], { concurrency: "unbounded" }) : first!
        }),
      )
    },
  }
}
