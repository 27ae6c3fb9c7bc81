import type { Priority } from "../protocol.ts"
import { type RunningJob, Scheduler, type SchedulerOptions } from "../scheduler.ts"

export const settled = async (turns = 50): Promise<void> => {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
}

interface FakeJob {
  readonly id: number
  reads: number
  writes: number
  readonly onStep: () => void
}

interface Request {
  readonly id: number
  readonly reads?: number
  readonly writes?: number
  readonly account?: string
  readonly priority?: Priority
  readonly waitMs?: number
  readonly size?: number
  readonly onStep?: () => void
}

/**
 * A scheduler over a fake model: a step prefills one job and decodes all others, and takes 10 ms of
 * simulated time.
 */
export const schedulerFixture = (options: Partial<SchedulerOptions> = {}) => {
  const log: string[] = []
  const started = new Map<number, Request>()
  const state = { nowMs: 0, steps: 0, mostRunning: 0, mostHeld: 0 }
  const holds = new Map<number, number>()
  const runner = {
    step: async (
      running: readonly RunningJob<FakeJob>[],
      turn: (among: readonly RunningJob<FakeJob>[]) => RunningJob<FakeJob>,
    ) => {
      state.nowMs += 10
      state.steps++
      state.mostRunning = Math.max(state.mostRunning, running.length)
      const ended = []
      const reading = running.filter(({ job }) => job.reads > 0)
      const reader = reading.length ? turn(reading) : undefined
      if (reader) log.push(`read ${reader.id}`)
      if (reader) reader.job.reads--
      for (const of of running) {
        if (of.job.reads > 0 || of === reader) continue
        log.push(`write ${of.id}`)
        of.job.writes--
        try {
          of.job.onStep()
          if (of.job.writes <= 0) ended.push({ of })
        } catch (cause) {
          ended.push({ of, cause })
        }
      }
      return ended
    },
    release: (job: FakeJob) => void holds.delete(job.id),
  }
  const scheduler = new Scheduler<FakeJob>(
    runner,
    { slots: 2, capacity: Number.POSITIVE_INFINITY, nowMs: () => state.nowMs, ...options },
    {
      done: (id) => log.push(`done ${id}`),
      busy: (id) => log.push(`busy ${id}`),
      failed: (id, cause) => log.push(`failed ${id} ${(cause as Error).message}`),
    },
  )
  const submit = (request: Request) => {
    const {
      id,
      reads = 0,
      writes = 1,
      account = "a",
      priority = "realtime",
      waitMs = Number.POSITIVE_INFINITY,
      size = 0,
      onStep = () => {},
    } = request
    scheduler.submit({
      id,
      account,
      priority,
      waitMs,
      size,
      start: () => {
        log.push(`start ${id}`)
        started.set(id, request)
        holds.set(id, size)
        state.mostHeld = Math.max(
          state.mostHeld,
          [...holds.values()].reduce((a, b) => a + b, 0),
        )
        return { id, reads, writes, onStep }
      },
    })
  }
  return { scheduler, log, submit, state, holds }
}

export const order = (log: readonly string[], verb: string): readonly number[] =>
  log.filter((line) => line.startsWith(`${verb} `)).map((line) => Number(line.split(" ")[1]))
