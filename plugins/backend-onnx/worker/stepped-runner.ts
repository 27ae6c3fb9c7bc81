import type { EndedJob, ModelRunner, RunningJob } from "./scheduler.ts"
import type { Stepped } from "./stepped.ts"

/**
 * After so many steps in a row for real-time requests a line of a batch gets one, so that batches
 * make progress under constant load.
 */
const stepsBeforeBatch = 15

/**
 * Runs one denoising step of one picture at a time. Accounts share the time of the engine, not the
 * number of steps: one that draws large pictures does not hold up one that draws small ones.
 */
export class SteppedRunner implements ModelRunner<Stepped> {
  /** Ms that each account has used while it had a job here. */
  private readonly usedMs = new Map<string, number>()
  private urgentSteps = 0
  private readonly nowMs: () => number

  constructor(nowMs: () => number = () => performance.now()) {
    this.nowMs = nowMs
  }

  async step(running: readonly RunningJob<Stepped>[]): Promise<readonly EndedJob<Stepped>[]> {
    this.settle(running)
    const of = this.chosen(this.entitled(running))
    const startedMs = this.nowMs()
    try {
      return (await of.job.next()) ? [{ of }] : []
    } catch (cause) {
      return [{ of, cause }]
    } finally {
      const used = this.usedMs.get(of.account) ?? 0
      this.usedMs.set(of.account, used + this.nowMs() - startedMs)
    }
  }

  release(job: Stepped): void {
    job.cancel()
  }

  /** Forgets accounts that left; a new one begins where the one with the least time is. */
  private settle(running: readonly RunningJob<Stepped>[]): void {
    const accounts = new Set(running.map(({ account }) => account))
    for (const account of this.usedMs.keys())
      if (!accounts.has(account)) this.usedMs.delete(account)
    const least = Math.min(...this.usedMs.values())
    for (const account of accounts)
      if (!this.usedMs.has(account)) this.usedMs.set(account, Number.isFinite(least) ? least : 0)
  }

  private entitled(running: readonly RunningJob<Stepped>[]): readonly RunningJob<Stepped>[] {
    const urgent = running.filter(({ priority }) => priority === "realtime")
    const batch = running.filter(({ priority }) => priority === "batch")
    const isUrgent =
      urgent.length > 0 && (batch.length === 0 || this.urgentSteps < stepsBeforeBatch)
    this.urgentSteps = isUrgent ? this.urgentSteps + 1 : 0
    return isUrgent ? urgent : batch
  }

  /** The first job of the account that has used the least time. */
  private chosen(among: readonly RunningJob<Stepped>[]): RunningJob<Stepped> {
    const used = ({ account }: RunningJob<Stepped>) => this.usedMs.get(account) ?? 0
    return among.reduce((best, other) => (used(other) < used(best) ? other : best))
  }
}
