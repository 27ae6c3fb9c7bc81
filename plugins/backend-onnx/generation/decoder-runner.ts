import type { EndedJob, ModelRunner, RunningJob } from "../worker/scheduler.ts"
import { AnswerSet } from "./answer-set.ts"
import type { CachedDecoder } from "./cached-decoder.ts"
import { DecodeBanks } from "./decode-banks.ts"
import { GenerateJob } from "./generate-job.ts"
import type { ScoreJob } from "./score-job.ts"

export type DecoderJob = GenerateJob | ScoreJob | AnswerSet

/** A sequence that is read or written: a job, or one of its answers. */
interface Row<Job = GenerateJob | ScoreJob> extends RunningJob<Job> {
  readonly of: RunningJob<DecoderJob>
}
type RunningDecode = Row<GenerateJob>
type Done = (row: Row, cause?: unknown) => void

const pollMs = 1
const sleeping = new Int32Array(new SharedArrayBuffer(4))
const sleep = (durationMs: number): void => void Atomics.wait(sleeping, 0, 0, durationMs)

const isDecoding = (row: Row): row is RunningDecode =>
  row.job instanceof GenerateJob && !row.job.isPrefilling && !row.job.ended

const rowsOf = (of: RunningJob<DecoderJob>): readonly Row[] => {
  const { id, account, priority, job } = of
  if (!(job instanceof AnswerSet)) return [{ id, account, priority, job, of }]
  return job.rows.map((row) => ({ id, account, priority, job: row, of }))
}

/** Ends a row; returns the end of its job, if that has ended, too. */
const endOf = ({ of, job }: Row, cause: unknown): EndedJob<DecoderJob> | undefined => {
  if (cause !== undefined) return { of, cause }
  if (!(of.job instanceof AnswerSet)) return { of }
  try {
    return of.job.rowEnded(job as GenerateJob) ? { of } : undefined
  } catch (failure) {
    return { of, cause: failure }
  }
}

/**
 * A step of a chat model: one chunk of one prompt (chunked prefill), then one token of every answer
 * that is being decoded.
 */
export class DecoderRunner implements ModelRunner<DecoderJob> {
  private readonly session: CachedDecoder
  private readonly speculation: boolean
  private readonly banks: DecodeBanks<GenerateJob>

  constructor(session: CachedDecoder, { speculation = true } = {}) {
    this.session = session
    this.speculation = speculation
    this.banks = new DecodeBanks(session.mostTokens)
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
    const gone = new Set<Row>()
    const done: Done = (row, cause) => {
      gone.add(row)
      const end = endOf(row, cause)
      if (end) ended.push(end)
    }
    const rows = running.flatMap(rowsOf)
    const prefilling = rows.filter(
      ({ job }) => job.isPrefilling && !(job instanceof GenerateJob && job.mustWait),
    )
    if (prefilling.length) {
      const { job } = turn(prefilling)
      await this.prefill(prefilling.find((row) => row.job === job)!, done)
    }
    const candidates = rows.filter(isDecoding).filter((row) => !gone.has(row))
    for (const row of candidates)
      if (row.job.isLate) await this.attempt(row, done, async () => row.job.retry())
    const decoding = candidates.filter((row) => !gone.has(row) && !row.job.isLate)
    if (!prefilling.length && !decoding.length && !ended.length) sleep(pollMs)
    const startedMs = performance.now()
    await this.decode(decoding, done)
    const tookMs = performance.now() - startedMs
    for (const job of new Set(
      decoding.map(({ of, job }) => (of.job instanceof AnswerSet ? of.job : job)),
    ))
      job.spent("decode", tookMs)
    for (const { job } of candidates) job.stepped()
    return ended
  }

  slotsOf(job: DecoderJob): number {
    return job instanceof AnswerSet ? job.slots : 1
  }

  grow(job: DecoderJob): boolean {
    return job instanceof AnswerSet && job.grow()
  }

  release(job: DecoderJob): void {
    job.release()
    this.banks.dropEnded()
  }

  private async prefill(running: Row, done: Done): Promise<void> {
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
    const byJob = new Map(decoding.map((row) => [row.job, row]))
    const groups = this.banks
      .arrange(decoding.map(({ job }) => job))
      .map((group) => group.map((job) => byJob.get(job)!))
    for (const group of groups) {
      const [first] = group
      // cancelled while another group was computed: their store may be another's by now
      if (group.every(({ job }) => job.ended)) continue
      if (group.length > 1) await this.decodeGroup(group, done)
      else if (first)
        await this.attempt(first, done, () =>
          decoding.length === 1 && this.speculation
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
      const isAtEnd = await work()
      row.job.shorten()
      if (isAtEnd) done(row)
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
      for (const row of group)
        if (!row.job.ended) await this.attempt(row, done, () => this.decodeAlone(row.job))
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
    // logits behind a rejected draft token, or tokens that were taken back, belong to another text
    do isAtEnd = job.take(logits[taken++]!)
    while (!isAtEnd && job.goesOn && taken <= drafts.length && drafts[taken - 1] === job.last)
    keep(taken)
    job.lookup.record(drafts.length, taken - 1)
    return isAtEnd
  }
}
