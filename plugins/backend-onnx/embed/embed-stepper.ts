import type { Tensor } from "onnxruntime-node"
import { longs, type Session } from "../engine/onnx-session.ts"
import type { Ended, Running, Stepper } from "../engine/scheduler.ts"
import type { EmbedJob } from "./embed-job.ts"

// a step of more tokens would keep others waiting; more texts would mostly be padding
const stepTokens = 256
const stepTexts = 16
/** By how many tokens texts of a step may differ from the first one, of `length`: more padding would cost what their company saves. */
const tolerance = (length: number): number => Math.max(8, length / 4)

/** A text that waits. */
export interface WaitingText {
  readonly of: Running<EmbedJob>
  readonly index: number
  readonly length: number
}

const waitingText = (of: Running<EmbedJob>, place: number): WaitingText => {
  const index = of.job.waiting[place]!
  return { of, index, length: of.job.texts[index]!.length }
}

/** Of thousands of texts those that may come into a step: few, with lengths around `length`. */
const textsNear = (of: Running<EmbedJob>, length: number): readonly WaitingText[] => {
  const { waiting, texts } = of.job
  let [from, to] = [0, waiting.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (texts[waiting[middle]!]!.length < length) from = middle + 1
    else to = middle
  }
  const places = waiting.slice(Math.max(0, from - stepTexts), from + stepTexts).map((_, i) => Math.max(0, from - stepTexts) + i)
  return places.map((place) => waitingText(of, place)).filter((text) => Math.abs(text.length - length) <= tolerance(length))
}

/** The shortest text of `leader` and what is most like it in length: its own texts and those of the others of its priority. */
export const chooseTexts = (leader: Running<EmbedJob>, running: readonly Running<EmbedJob>[]): readonly WaitingText[] => {
  if (leader.job.waiting.length === 0) return []
  const first = waitingText(leader, 0)
  const own = textsNear(leader, first.length).filter(({ index }) => index !== first.index)
  const others = running.filter((other) => other !== leader && other.priority === leader.priority).flatMap((other) => textsNear(other, first.length))
  const distance = ({ length }: WaitingText) => Math.abs(length - first.length)
  const chosen = [first]
  let width = first.length
  for (const text of [...own, ...others].sort((a, b) => distance(a) - distance(b))) {
    const wider = Math.max(width, text.length)
    if (chosen.length === stepTexts || (chosen.length + 1) * wider > stepTokens) break
    chosen.push(text)
    width = wider
  }
  return chosen
}

const feedsOf = (texts: readonly Int32Array[]): Record<string, Tensor> => {
  const width = Math.max(...texts.map((text) => text.length))
  const ids = new Array<number>(texts.length * width).fill(0)
  for (const [row, text] of texts.entries()) for (let i = 0; i < text.length; i++) ids[row * width + i] = text[i]!
  return { input_ids: longs(ids, [texts.length, width]), lengths: longs(texts.map((text) => text.length)) }
}

/** A step of a sentence encoder: a few texts of like length, of one request or of several. Batches get steps in which nobody else waits. */
export class EmbedStepper implements Stepper<EmbedJob> {
  private readonly session: Session

  constructor(session: Session) {
    this.session = session
  }

  async step(running: readonly Running<EmbedJob>[], turn: (among: readonly Running<EmbedJob>[]) => Running<EmbedJob>): Promise<readonly Ended<EmbedJob>[]> {
    const urgent = running.filter(({ priority }) => priority === "realtime")
    const leader = turn(urgent.length ? urgent : running)
    const chosen = chooseTexts(leader, running)
    if (chosen.length === 0) return [{ of: leader }]
    const jobs = [...new Set(chosen.map(({ of }) => of))]
    try {
      return await this.embed(chosen, jobs)
    } catch (cause) {
      if (jobs.length === 1) return [{ of: jobs[0]!, cause }]
      // one of them may be the reason: each gets a try of its own
      const ended: Ended<EmbedJob>[] = []
      for (const of of jobs) ended.push(...(await this.step([of], () => of)))
      return ended
    }
  }

  release(): void {}

  private async embed(chosen: readonly WaitingText[], jobs: readonly Running<EmbedJob>[]): Promise<readonly Ended<EmbedJob>[]> {
    const startedMs = performance.now()
    const { vectors } = await this.session.run(feedsOf(chosen.map(({ of, index }) => of.job.texts[index]!)))
    const all = vectors!.data as Float32Array
    const size = all.length / chosen.length
    for (const [row, { of, index }] of chosen.entries()) of.job.take(index, all.slice(row * size, (row + 1) * size))
    const durationMs = performance.now() - startedMs
    return jobs.filter(({ job }) => job.spent(durationMs)).map((of) => ({ of }))
  }
}
