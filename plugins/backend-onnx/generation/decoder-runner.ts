import type { EndedJob, ModelRunner, RunningJob } from "../worker/scheduler.ts"
import type { CachedDecoder } from "./cached-decoder.ts"
import { DecodeBanks } from "./decode-banks.ts"
import { GenerateJob } from "./generate-job.ts"
import type { ScoreJob } from "./score-job.ts"

export type DecoderJob = GenerateJob | ScoreJob

type RunningDecode = RunningJob<DecoderJob> & { readonly job: GenerateJob }
type Done = (of: RunningJob<DecoderJob>, cause?: unknown) => void

const pollMs = 1
const sleeping = new Int32Array(new SharedArrayBuffer(4))
const sleep = (durationMs: number): void => void Atomics.wait(sleeping, 0, 0, durationMs)

const isDecoding = (running: RunningJob<DecoderJob>): running is RunningDecode =>
  running.job instanceof GenerateJob && !running.job.isPrefilling && !running.job.ended

/**
 * A step of a chat model: one chunk of one prompt (chunked prefill), then one token of every answer
 * that is being decoded.
 */
export class DecoderRunner implements ModelRunner<DecoderJob> {
  private readonly session: CachedDecoder
  private readonly speculation: boolean
  private readonly banks = new DecodeBanks<GenerateJob>()

  constructor(session: CachedDecoder, { speculation = true } = {}) {
    this.session = session
    this.speculation = speculation
  }

  /**
   * A late grammar delays its own request only; where all requests wait for grammars, the thread
   * sleeps between two polls.
   */
  async step(
    running: readonly RunningJob<DecoderJob>[],
    turn: (among: readonly RunningJob<DecoderJob>[]) => RunningJob<DecoderJob>,
  ): Promise<readonly EndedJob<DecoderJob>[]> {
    const ended: EndedJob<DecoderJob>[] = []
    const gone = new Set<RunningJob<DecoderJob>>()
    const done: Done = (of, cause) => {
      gone.add(of)
      ended.push(cause === undefined ? { of } : { of, cause })
    }
    const prefilling = running.filter(
      ({ job }) => job.isPrefilling && !(job instanceof GenerateJob && job.mustWait),
    )
    if (prefilling.length) await this.prefill(turn(prefilling), done)
    const candidates = running.filter(isDecoding).filter((row) => !gone.has(row))
    for (const row of candidates)
      if (row.job.isLate) await this.attempt(row, done, async () => row.job.retry())
    const decoding = candidates.filter((row) => !gone.has(row) && !row.job.isLate)
    if (!prefilling.length && !decoding.length && !ended.length) sleep(pollMs)
    const startedMs = performance.now()
    await this.decode(decoding, done)
    for (const { job } of decoding) job.spent("decode", performance.now() - startedMs)
    return ended
  }

  release(job: DecoderJob): void {
    job.release()
  }

  private async prefill(running: RunningJob<DecoderJob>, done: Done): Promise<void> {
    const startedMs = performance.now()
    try {
      const isAtEnd = await running.job.prefill()
      running.job.spent("prefill", performance.now() - startedMs)
      if (isAtEnd) done(running)
    } catch (cause) {
      done(running, cause)
    }
  }

  private async decode(decoding: readonly RunningDecode[], done: Done): Promise<void> {
    // answers with a seed are computed alone, in buffers of their own, as batching changes rounding
    const apart = decoding.filter(({ job }) => job.request.isRepeatable)
    const together = decoding.filter(({ job }) => !job.request.isRepeatable)
    for (const row of apart) await this.attempt(row, done, () => this.decodeAlone(row.job))
    const byJob = new Map(together.map((row) => [row.job, row]))
    const groups = this.banks
      .arrange(together.map(({ job }) => job))
      .map((group) => group.map((job) => byJob.get(job)!))
    for (const group of groups) {
      const [first] = group
      if (group.length > 1) await this.decodeGroup(group, done)
      else if (first)
        await this.attempt(first, done, () =>
          decoding.length === 1 && this.speculation && first.job.maySpeculate
            ? this.decodeWithDrafts(first.job)
            : this.decodeAlone(first.job),
        )
    }
  }

  private async attempt(
    row: RunningDecode,
    done: Done,
    work: () => Promise<boolean>,
  ): Promise<void> {
    try {
      if (await work()) done(row)
    } catch (cause) {
      done(row, cause)
    }
  }

  private async decodeAlone(job: GenerateJob): Promise<boolean> {
    return job.take(await this.session.forward(job.cache, [job.last], true))
  }

  private async decodeGroup(group: readonly RunningDecode[], done: Done): Promise<void> {
    let answers: readonly (Float32Array | undefined)[]
    try {
      answers = await this.session.decode(
        group.map(({ job }) => job.cache),
        group.map(({ job }) => job.last),
      )
    } catch {
      // one of the sequences may be the cause, so each is tried alone
      for (const row of group) await this.attempt(row, done, () => this.decodeAlone(row.job))
      return
    }
    for (const [index, row] of group.entries())
      await this.attempt(row, done, async () => {
        const logits = answers[index]
        if (!logits) throw new Error("the model's keys or values are not finite numbers")
        return row.job.take(logits)
      })
  }

  /**
   * Runs the last token and its draft tokens in one pass, and accepts drafts up to the first that
   * the sampler does not choose.
   */
  private async decodeWithDrafts(job: GenerateJob): Promise<boolean> {
    const drafts = job.draftTokens()
    if (!drafts.length) return this.decodeAlone(job)
    const { logits, keep } = await this.session.verifyDrafts(job.cache, [job.last, ...drafts])
    let taken = 0
    let isAtEnd = false
    // logits behind a rejected draft token belong to another text
    do isAtEnd = job.take(logits[taken++]!)
    while (!isAtEnd && !job.isLate && taken <= drafts.length && drafts[taken - 1] === job.last)
    keep(taken)
    job.lookup.record(drafts.length, taken - 1)
    return isAtEnd
  }
}
