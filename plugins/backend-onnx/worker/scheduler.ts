import { FairQueue } from "./fair-queue.ts"
import type { Priority } from "./protocol.ts"

export interface Submission<Job> {
  readonly id: number
  readonly account: string
  readonly priority: Priority
  /** How long the request may wait for a slot before it is refused. */
  readonly waitMs: number
  /** The capacity that the job holds while it runs, in the worst case, in the engine's unit. */
  readonly size: number
  /** Called when the job gets a slot. */
  start(): Job
}

export interface RunningJob<Job> {
  readonly id: number
  readonly account: string
  readonly priority: Priority
  readonly job: Job
}

export type EndedJob<Job> = { readonly of: RunningJob<Job>; readonly cause?: unknown }

/** Runs a model for the jobs that have a slot. */
export interface ModelRunner<Job> {
  /**
   * Runs one step of some tens of milliseconds. Returns the jobs that ended. `turn` chooses a job
   * when a step serves only one: accounts take turns.
   */
  step(
    running: readonly RunningJob<Job>[],
    turn: (among: readonly RunningJob<Job>[]) => RunningJob<Job>,
  ): Promise<readonly EndedJob<Job>[]>
  /** Frees a job that ended or was cancelled. */
  release(job: Job): void
  /** The number of slots that a job takes now; one by default. */
  slotsOf?(job: Job): number
  /** Lets a job take one more slot; returns false if it has no use for it. */
  grow?(job: Job): boolean
}

export interface Outcome {
  done(id: number): void
  failed(id: number, cause: unknown): void
  /** No slot became free within `waitMs`. */
  busy(id: number): void
  /** The sizes of all started jobs together have changed: once for each job that starts or ends. */
  held?(size: number): void
}

export interface SchedulerOptions {
  readonly slots: number
  /**
   * The limit for the sizes of all started jobs together. Batch jobs take at most half, so that
   * real-time jobs always find some.
   */
  readonly capacity: number
  nowMs(): number
}

type Queued<Job> = Submission<Job> & { readonly queuedMs: number }
interface StartedJob<Job> extends RunningJob<Job> {
  readonly submission: Submission<Job>
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Runs up to `slots` jobs in one model, a step at a time (continuous batching, Yu et al., Orca,
 * OSDI 2022); the others wait, `realtime` before `batch`, accounts in turn.
 * States of a job: waiting -> running <-> paused (batch only, while a real-time job needs the slot)
 * -> done | failed; waiting -> busy after `waitMs`.
 * A cancel removes it in any state; a running job within one step.
 */
export class Scheduler<Job> {
  private readonly runner: ModelRunner<Job>
  private readonly options: SchedulerOptions
  private readonly outcome: Outcome
  private readonly waiting = new FairQueue<Queued<Job>>()
  private running: StartedJob<Job>[] = []
  private paused: StartedJob<Job>[] = []
  private readonly turns = new Map<string, number>()
  private turnsTaken = 0
  private looping: Promise<void> | undefined

  constructor(runner: ModelRunner<Job>, options: SchedulerOptions, outcome: Outcome) {
    this.runner = runner
    this.options = options
    this.outcome = outcome
  }

  submit(submission: Submission<Job>): void {
    this.waiting.push({ ...submission, queuedMs: this.options.nowMs() })
    this.looping ??= this.loop()
  }

  /** Drops all jobs; resolves when no step is running any more. */
  async stop(): Promise<void> {
    this.waiting.clear()
    for (const { job } of [...this.running, ...this.paused]) this.runner.release(job)
    this.running = []
    this.paused = []
    await this.looping
  }

  cancel(id: number): void {
    const queued = this.waiting.find(id)
    if (queued) this.waiting.remove(queued)
    const started = [...this.running, ...this.paused].find((other) => other.id === id)
    if (started) this.drop(started)
  }

  private drop(started: StartedJob<Job>): void {
    this.running = this.running.filter((other) => other !== started)
    this.paused = this.paused.filter((other) => other !== started)
    this.runner.release(started.job)
    this.outcome.held?.(this.held())
  }

  private held(priority?: Priority): number {
    return [...this.running, ...this.paused].reduce(
      (sum, { submission }) =>
        priority && submission.priority !== priority ? sum : sum + submission.size,
      0,
    )
  }

  private fits({ size, priority }: Submission<Job>): boolean {
    const held = this.held()
    if (held > 0 && held + size > this.options.capacity) return false
    return (
      priority === "realtime" ||
      this.held("batch") === 0 ||
      this.held("batch") + size <= this.options.capacity / 2
    )
  }

  private readonly runningOf = (account: string): number =>
    this.running.filter((other) => other.account === account).length

  /**
   * Gives slots to real-time jobs first: a batch job is preempted, and resumed when no real-time
   * job waits.
   */
  private admit(): void {
    for (
      let next = this.waiting.next("realtime", this.runningOf);
      next;
      next = this.waiting.next("realtime", this.runningOf)
    ) {
      if (!this.fits(next) || !this.freeSlot()) break
      this.start(next)
    }
    const isWanted = this.waiting.next("realtime", this.runningOf) !== undefined
    if (!isWanted) {
      this.grow("realtime")
      while (this.paused.length && this.hasSlots(this.slotsOf(this.paused[0]!)))
        this.running.push(this.paused.shift()!)
    }
    while (!isWanted && !this.paused.length && this.hasSlots(1)) {
      const next = this.waiting.next("batch", this.runningOf)
      if (!next || !this.fits(next)) break
      this.start(next)
    }
    if (!isWanted) this.grow("batch")
    // a paused job must not keep the capacity forever that the next real-time job waits for
    if (!this.running.length && this.paused.length) this.running.push(this.paused.shift()!)
    this.refuseTheLate()
  }

  private slotsOf({ job }: StartedJob<Job>): number {
    return this.runner.slotsOf?.(job) ?? 1
  }

  private hasSlots(wanted: number): boolean {
    const taken = this.running.reduce((sum, started) => sum + this.slotsOf(started), 0)
    return taken + wanted <= this.options.slots
  }

  private freeSlot(): boolean {
    if (this.hasSlots(1)) return true
    const yielding = this.running.findLast(({ submission }) => submission.priority === "batch")
    if (!yielding) return false
    this.running = this.running.filter((other) => other !== yielding)
    this.paused.unshift(yielding)
    return this.freeSlot()
  }

  /**
   * Gives the slots that nobody waits for to jobs that can use several: a job has one for certain.
   */
  private grow(priority: Priority): void {
    if (!this.runner.grow) return
    const growing = new Set(this.running.filter((started) => started.priority === priority))
    while (growing.size && this.hasSlots(1))
      for (const started of growing)
        if (!this.hasSlots(1) || !this.grows(started)) growing.delete(started)
  }

  private grows(started: StartedJob<Job>): boolean {
    try {
      return this.runner.grow!(started.job)
    } catch (cause) {
      this.drop(started)
      this.outcome.failed(started.id, cause)
      return false
    }
  }

  private start(queued: Queued<Job>): void {
    this.waiting.take(queued)
    // a new account comes just before the one served last: an account that returns after every turn
    // must not count as the one that waited longest
    if (!this.turns.has(queued.account)) this.turns.set(queued.account, this.turnsTaken - 1)
    try {
      const { id, account, priority } = queued
      this.running.push({ id, account, priority, job: queued.start(), submission: queued })
      this.outcome.held?.(this.held())
    } catch (cause) {
      this.outcome.failed(queued.id, cause)
    }
  }

  private refuseTheLate(): void {
    const nowMs = this.options.nowMs()
    for (const queued of [...this.waiting.all()])
      if (nowMs - queued.queuedMs >= queued.waitMs) {
        this.waiting.remove(queued)
        this.outcome.busy(queued.id)
      }
  }

  /** Returns the first job of the account whose last turn is longest ago. */
  private readonly turn = (among: readonly RunningJob<Job>[]): RunningJob<Job> => {
    const lastTurn = (running: RunningJob<Job>) => this.turns.get(running.account) ?? 0
    const chosen = among.reduce((best, other) => (lastTurn(other) < lastTurn(best) ? other : best))
    this.turns.set(chosen.account, ++this.turnsTaken)
    return chosen
  }

  /** Runs one step. Jobs that were cancelled during it are not in `running` any more. */
  private async step(): Promise<void> {
    const before = this.running
    let ended: readonly EndedJob<Job>[]
    try {
      ended = await this.runner.step(before, this.turn)
    } catch (cause) {
      ended = before.map((of) => ({ of, cause }))
    }
    for (const end of ended) {
      const started = this.running.find((other) => other === end.of)
      if (!started) continue
      this.drop(started)
      if ("cause" in end) this.outcome.failed(started.id, end.cause)
      else this.outcome.done(started.id)
    }
  }

  private forgetTurns(): void {
    for (const account of this.turns.keys())
      if (!this.runningOf(account)) this.turns.delete(account)
  }

  private async loop(): Promise<void> {
    // let submissions and cancellations in, which arrive as messages
    await nextTurn()
    for (;;) {
      this.admit()
      if (!this.running.length) break
      await this.step()
      this.forgetTurns()
      await nextTurn()
    }
    this.looping = undefined
  }
}
