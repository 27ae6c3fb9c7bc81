import { longs, type Session } from "../onnx/onnx-session.ts"
import type { Tensor } from "../onnx/runtime.ts"
import type { EndedJob, ModelRunner, RunningJob } from "../worker/scheduler.ts"
import { type EmbedJob, type EncoderInput, idsOf } from "./embed-job.ts"

// larger batches would mostly add padding
const stepTexts = 16
/**
 * After this many steps in a row for real-time requests a batch line gets one, so that batches make
 * progress under constant load.
 */
const stepsBeforeBatch = 15
/**
 * How many tokens the lengths in a step may differ from that of the first text: with more padding,
 * batching would cost what it saves.
 */
const tolerance = (length: number): number => Math.max(8, length / 4)
const pairTokens = 16
/**
 * The padded length of a pair. Scores are compared with each other, so they don't depend on the
 * batch by a single bit: pairs share it with those of the same padded length only.
 */
export const paddedPair = (length: number, maxTokens: number): number =>
  Math.min(Math.ceil(length / pairTokens) * pairTokens, maxTokens)

/** A text that is not embedded yet. */
export interface WaitingText<Input = EncoderInput> {
  readonly of: RunningJob<EmbedJob<Input>>
  readonly index: number
  readonly length: number
}

const waitingText = <Input>(of: RunningJob<EmbedJob<Input>>, place: number): WaitingText<Input> => {
  const index = of.job.waiting[place]!
  return { of, index, length: of.job.lengths[index]! }
}

/**
 * The texts of a request with lengths around `length`, found by binary search: at most `2 *
 * stepTexts`.
 */
const textsNear = <Input>(
  of: RunningJob<EmbedJob<Input>>,
  length: number,
  most: number,
): readonly WaitingText<Input>[] => {
  const { waiting, lengths } = of.job
  let [from, to] = [0, waiting.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (lengths[waiting[middle]!]! < length) from = middle + 1
    else to = middle
  }
  const places = waiting
    .slice(Math.max(0, from - stepTexts), from + stepTexts)
    .map((_, i) => Math.max(0, from - stepTexts) + i)
  return places
    .map((place) => waitingText(of, place))
    .filter((text) => Math.abs(text.length - length) <= most)
}

const byDistance = (length: number) => (a: { length: number }, b: { length: number }) =>
  Math.abs(a.length - length) - Math.abs(b.length - length)

/**
 * The nearest text of each request, then the second nearest of each, so that a small request shares
 * the first step whatever the others bring.
 */
const inTurns = <Input>(
  lists: readonly (readonly WaitingText<Input>[])[],
  length: number,
): readonly WaitingText<Input>[] => {
  const ranks = Math.max(0, ...lists.map((list) => list.length))
  return Array.from({ length: ranks }, (_, rank) =>
    lists.flatMap((list) => list[rank] ?? []).sort(byDistance(length)),
  ).flat()
}

/**
 * Chooses the batch of a step: the shortest text of `leader` and texts of similar length, its own
 * first, then those of other requests with its priority. A batch of several texts has at most
 * `stepTokens` tokens, padding included. `sameLength`: only texts of the very same length.
 */
export const chooseTexts = <Input>(
  leader: RunningJob<EmbedJob<Input>>,
  running: readonly RunningJob<EmbedJob<Input>>[],
  stepTokens: number,
  sameLength = false,
): readonly WaitingText<Input>[] => {
  if (leader.job.waiting.length === 0) return []
  const first = waitingText(leader, 0)
  const most = sameLength ? 0 : tolerance(first.length)
  const near = (of: RunningJob<EmbedJob<Input>>) =>
    [...textsNear(of, first.length, most)].sort(byDistance(first.length))
  const own = near(leader).filter(({ index }) => index !== first.index)
  const others = running
    .filter((other) => other !== leader && other.priority === leader.priority)
    .map(near)
  const chosen = [first]
  let width = first.length
  for (const text of [...own, ...inTurns(others, first.length)]) {
    const wider = Math.max(width, text.length)
    if (chosen.length === stepTexts || (chosen.length + 1) * wider > stepTokens) break
    chosen.push(text)
    width = wider
  }
  return chosen
}

export type Feeds = Record<string, Tensor>

const feedsOf = (
  inputs: readonly EncoderInput[],
  pairs: boolean,
  padded: (length: number) => number,
): Feeds => {
  const texts = inputs.map(idsOf)
  const width = padded(Math.max(...texts.map((text) => text.length)))
  const ids = new Array<number>(texts.length * width).fill(0)
  for (const [row, text] of texts.entries())
    for (let i = 0; i < text.length; i++) ids[row * width + i] = text[i]!
  return {
    input_ids: longs(ids, [texts.length, width]),
    lengths: longs(texts.map((text) => text.length)),
    ...(pairs && {
      seconds: longs(
        inputs.map((input) => (input instanceof Int32Array ? input.length : input.secondFrom)),
      ),
    }),
  }
}

/** Returns what makes the feeds of a graph that reads texts, by default padded to the longest. */
export const textFeeds = (
  session: Session,
  padded = (longest: number): number => longest,
): ((texts: readonly EncoderInput[]) => Feeds) => {
  // whether the graph reads where the second text of a pair begins
  const pairs = session.inputs.some(({ name }) => name === "seconds")
  return (texts) => feedsOf(texts, pairs, padded)
}

/**
 * Runs an encoder over batches of inputs of similar length, of one request or several. Batch work
 * gets the steps in which no real-time request waits, and one in 16.
 */
export class EncoderRunner<Input = EncoderInput> implements ModelRunner<EmbedJob<Input>> {
  private readonly session: Session
  private readonly stepTokens: number
  private readonly feeds: (inputs: readonly Input[]) => Feeds
  private readonly sameLength: boolean
  private urgentSteps = 0

  constructor(
    session: Session,
    stepTokens: number,
    feeds: (inputs: readonly Input[]) => Feeds,
    { sameLength = false } = {},
  ) {
    this.session = session
    this.sameLength = sameLength
    this.stepTokens = stepTokens
    this.feeds = feeds
  }

  async step(
    running: readonly RunningJob<EmbedJob<Input>>[],
    turn: (among: readonly RunningJob<EmbedJob<Input>>[]) => RunningJob<EmbedJob<Input>>,
  ): Promise<readonly EndedJob<EmbedJob<Input>>[]> {
    const leader = turn(this.mayLead(running))
    const chosen = chooseTexts(leader, running, this.stepTokens, this.sameLength)
    if (chosen.length === 0) return [{ of: leader }]
    const jobs = [...new Set(chosen.map(({ of }) => of))]
    for (const { job } of jobs) job.begin()
    try {
      return await this.embed(chosen, jobs)
    } catch (cause) {
      if (jobs.length === 1) return [{ of: jobs[0]!, cause }]
      // one of the requests may be the cause, so each is tried alone
      const ended: EndedJob<EmbedJob<Input>>[] = []
      for (const of of jobs) ended.push(...(await this.step([of], () => of)))
      return ended
    }
  }

  release(): void {}

  private mayLead(
    running: readonly RunningJob<EmbedJob<Input>>[],
  ): readonly RunningJob<EmbedJob<Input>>[] {
    const [urgent, batch] = [
      running.filter(({ priority }) => priority === "realtime"),
      running.filter(({ priority }) => priority === "batch"),
    ]
    const isUrgent =
      urgent.length > 0 && (batch.length === 0 || this.urgentSteps < stepsBeforeBatch)
    this.urgentSteps = isUrgent ? this.urgentSteps + 1 : 0
    return isUrgent ? urgent : batch
  }

  private async embed(
    chosen: readonly WaitingText<Input>[],
    jobs: readonly RunningJob<EmbedJob<Input>>[],
  ): Promise<readonly EndedJob<EmbedJob<Input>>[]> {
    const startedMs = performance.now()
    const { vectors } = await this.session.run(
      this.feeds(chosen.map(({ of, index }) => of.job.inputs[index]!)),
    )
    const all = vectors!.data as Float32Array
    const size = all.length / chosen.length
    for (const [row, { of, index }] of chosen.entries())
      of.job.take(index, all.slice(row * size, (row + 1) * size))
    const durationMs = performance.now() - startedMs
    return jobs.filter(({ job }) => job.spent(durationMs)).map((of) => ({ of }))
  }
}
