import type { Ended, Running, Stepper } from "../worker/scheduler.ts"
import type { LlamaSession } from "./cached-decoder.ts"
import { DecodeBanks } from "./decode-banks.ts"
import { GenerateJob } from "./generate-job.ts"
import type { ScoreJob } from "./score-job.ts"

export type LlamaJob = GenerateJob | ScoreJob

type RunningWriter = Running<LlamaJob> & { readonly job: GenerateJob }
type Done = (of: Running<LlamaJob>, cause?: unknown) => void

const pollMs = 1
const sleeping = new Int32Array(new SharedArrayBuffer(4))
const sleep = (durationMs: number): void => void Atomics.wait(sleeping, 0, 0, durationMs)

const isWriter = (running: Running<LlamaJob>): running is RunningWriter =>
  running.job instanceof GenerateJob && !running.job.isReading && !running.job.ended

/** A step of a chat model: one chunk of one prompt, then one token for every answer that is being written. */
export class LlamaStepper implements Stepper<LlamaJob> {
  private readonly session: LlamaSession
  private readonly guesses: boolean
  private readonly banks = new DecodeBanks<GenerateJob>()

  constructor(session: LlamaSession, { guesses = true } = {}) {
    this.session = session
    this.guesses = guesses
  }

  /** Nobody waits for another one's grammar; where all wait, the thread sleeps between two looks. */
  async step(
    running: readonly Running<LlamaJob>[],
    turn: (among: readonly Running<LlamaJob>[]) => Running<LlamaJob>,
  ): Promise<readonly Ended<LlamaJob>[]> {
    const ended: Ended<LlamaJob>[] = []
    const gone = new Set<Running<LlamaJob>>()
    const done: Done = (of, cause) => {
      gone.add(of)
      ended.push(cause === undefined ? { of } : { of, cause })
    }
    const readers = running.filter(
      ({ job }) => job.isReading && !(job instanceof GenerateJob && job.mustWait),
    )
    if (readers.length) await this.read(turn(readers), done)
    const writing = running.filter(isWriter).filter((writer) => !gone.has(writer))
    for (const writer of writing)
      if (writer.job.isLate) await this.attempt(writer, done, async () => writer.job.retry())
    const writers = writing.filter((writer) => !gone.has(writer) && !writer.job.isLate)
    if (!readers.length && !writers.length && !ended.length) sleep(pollMs)
    const startedMs = performance.now()
    await this.write(writers, done)
    for (const { job } of writers) job.spent("decode", performance.now() - startedMs)
    return ended
  }

  release(job: LlamaJob): void {
    job.release()
  }

  private async read(reader: Running<LlamaJob>, done: Done): Promise<void> {
    const startedMs = performance.now()
    try {
      const isAtEnd = await reader.job.read()
      reader.job.spent("prefill", performance.now() - startedMs)
      if (isAtEnd) done(reader)
    } catch (cause) {
      done(reader, cause)
    }
  }

  private async write(writers: readonly RunningWriter[], done: Done): Promise<void> {
    // what must be repeatable is computed alone, in buffers of its own
    const apart = writers.filter(({ job }) => job.request.isRepeatable)
    const together = writers.filter(({ job }) => !job.request.isRepeatable)
    for (const writer of apart) await this.attempt(writer, done, () => this.writeAlone(writer.job))
    const byJob = new Map(together.map((writer) => [writer.job, writer]))
    const groups = this.banks
      .arrange(together.map(({ job }) => job))
      .map((group) => group.map((job) => byJob.get(job)!))
    for (const group of groups) {
      const [first] = group
      if (group.length > 1) await this.writeGroup(group, done)
      else if (first)
        await this.attempt(first, done, () =>
          writers.length === 1 && this.guesses && first.job.mayGuess
            ? this.writeGuessing(first.job)
            : this.writeAlone(first.job),
        )
    }
  }

  private async attempt(
    writer: RunningWriter,
    done: Done,
    work: () => Promise<boolean>,
  ): Promise<void> {
    try {
      if (await work()) done(writer)
    } catch (cause) {
      done(writer, cause)
    }
  }

  private async writeAlone(job: GenerateJob): Promise<boolean> {
    return job.take(await this.session.step(job.cache, [job.last], true))
  }

  private async writeGroup(group: readonly RunningWriter[], done: Done): Promise<void> {
    let answers: readonly (Float32Array | undefined)[]
    try {
      answers = await this.session.decode(
        group.map(({ job }) => job.cache),
        group.map(({ job }) => job.last),
      )
    } catch {
      // one of them may be the reason: each gets a try of its own
      for (const writer of group)
        await this.attempt(writer, done, () => this.writeAlone(writer.job))
      return
    }
    for (const [index, writer] of group.entries())
      await this.attempt(writer, done, async () => {
        const logits = answers[index]
        if (!logits) throw new Error("the model's keys or values are not finite numbers")
        return writer.job.take(logits)
      })
  }

  /** Reads the last token and a guess of what follows; takes tokens for as long as the guess comes true. */
  private async writeGuessing(job: GenerateJob): Promise<boolean> {
    const guess = job.guess()
    if (!guess.length) return this.writeAlone(job)
    const { logits, keep } = await this.session.look(job.cache, [job.last, ...guess])
    let taken = 0
    let isAtEnd = false
    // what the model says after a token decides the next one; after a wrong guess it says nothing about this text
    do isAtEnd = job.take(logits[taken++]!)
    while (!isAtEnd && !job.isLate && taken <= guess.length && guess[taken - 1] === job.last)
    keep(taken)
    job.drafts.learn(guess.length, taken - 1)
    return isAtEnd
  }
}
