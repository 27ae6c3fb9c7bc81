import type { Priority } from "./protocol.ts"

/** Work that is done in small steps, so that others get their turn and a cancel takes effect soon. */
export interface EngineJob {
  /** True when it is finished. A step should take some tens of milliseconds. */
  step(): Promise<boolean>
}

export interface Submission {
  readonly id: number
  readonly priority: Priority
  /** Called when a slot is free. */
  start(): EngineJob
}

export interface Outcome {
  done(id: number): void
  failed(id: number, cause: unknown): void
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Up to `slots` jobs take turns, a step each; the others wait, `realtime` before `batch`, each in the order they came.
 * A job: waiting -> running -> done | failed; a cancel removes it from either state, from running within one step.
 */
export class Scheduler {
  private readonly slots: number
  private readonly outcome: Outcome
  private readonly waiting: Record<Priority, Submission[]> = { realtime: [], batch: [] }
  private running: { readonly id: number; readonly job: EngineJob }[] = []
  private looping: Promise<void> | undefined

  constructor(slots: number, outcome: Outcome) {
    this.slots = slots
    this.outcome = outcome
  }

  submit(submission: Submission): void {
    this.waiting[submission.priority].push(submission)
    this.looping ??= this.loop()
  }

  /** Forgets all jobs; done when no step is running any more. */
  async stop(): Promise<void> {
    for (const queue of Object.values(this.waiting)) queue.length = 0
    this.running = []
    await this.looping
  }

  cancel(id: number): void {
    for (const queue of Object.values(this.waiting)) {
      const index = queue.findIndex((submission) => submission.id === id)
      if (index >= 0) queue.splice(index, 1)
    }
    this.running = this.running.filter((running) => running.id !== id)
  }

  private admit(): void {
    while (this.running.length < this.slots) {
      const submission = this.waiting.realtime.shift() ?? this.waiting.batch.shift()
      if (!submission) return
      try {
        this.running.push({ id: submission.id, job: submission.start() })
      } catch (cause) {
        this.outcome.failed(submission.id, cause)
      }
    }
  }

  /** One step of the job whose turn it is. A job that was cancelled meanwhile is not in `running` any more. */
  private async turn(): Promise<void> {
    const current = this.running[0]!
    const leave = () => {
      this.running = this.running.filter((running) => running !== current)
    }
    try {
      const finished = await current.job.step()
      const cancelled = !this.running.includes(current)
      leave()
      if (cancelled) return
      if (finished) this.outcome.done(current.id)
      else this.running.push(current)
    } catch (cause) {
      leave()
      this.outcome.failed(current.id, cause)
    }
  }

  private async loop(): Promise<void> {
    // lets submissions and cancels in, which arrive as messages
    await nextTurn()
    for (;;) {
      this.admit()
      if (!this.running.length) break
      await this.turn()
      await nextTurn()
    }
    this.looping = undefined
  }
}
