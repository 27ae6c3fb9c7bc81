import type { Report } from "../context.ts"

type Start<A> = (report: Report, signal: AbortSignal) => Promise<A>

interface SharedJob<A> {
  readonly done: Promise<A>
  readonly reports: Set<Report>
  readonly controller: AbortController
}

/**
 * Callers with the same key share one run. An abort unsubscribes the caller; after the last one the run is aborted and awaited,
 * so that no second run starts beside it.
 */
export const makeSharedJobs = <A>() => {
  const running = new Map<string, SharedJob<A>>()

  const begin = (key: string, start: Start<A>): SharedJob<A> => {
    const reports = new Set<Report>()
    const controller = new AbortController()
    const reportAll: Report = (done, total) => {
      for (const report of reports) report(done, total)
    }
    const done = start(reportAll, controller.signal).finally(() => running.delete(key))
    done.catch(() => {})
    const job = { done, reports, controller }
    running.set(key, job)
    return job
  }

  const join = async (key: string, start: Start<A>): Promise<SharedJob<A>> => {
    for (;;) {
      const job = running.get(key)
      if (job === undefined) return begin(key, start)
      if (!job.controller.signal.aborted) return job
      await job.done.catch(() => {})
    }
  }

  const unsubscribe = async (job: SharedJob<A>, report: Report): Promise<void> => {
    job.reports.delete(report)
    if (job.reports.size > 0) return
    job.controller.abort()
    await job.done.catch(() => {})
  }

  return async (key: string, start: Start<A>, report: Report, signal: AbortSignal): Promise<A> => {
    signal.throwIfAborted()
    const job = await join(key, start)
    // wrapped, as two callers may pass the same function
    const listener: Report = (done, total) => report(done, total)
    job.reports.add(listener)
    const finished = new AbortController()
    const abandoned = new Promise<never>((_, reject) => {
      const onAbort = () => unsubscribe(job, listener).then(() => reject(signal.reason))
      signal.addEventListener("abort", onAbort, { once: true, signal: finished.signal })
      if (signal.aborted) onAbort()
    })
    try {
      return await Promise.race([job.done, abandoned])
    } finally {
      finished.abort()
      job.reports.delete(listener)
    }
  }
}
