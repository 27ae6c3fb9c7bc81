import type { Report } from "../context.ts"

type Start<A> = (report: Report, signal: AbortSignal) => Promise<A>

interface Running<A> {
  readonly done: Promise<A>
  readonly reports: Set<Report>
  readonly controller: AbortController
}

/**
 * Callers with the same key share one run. One that aborts only leaves; when the last one left, the run is aborted and its end awaited, so that nobody
 * starts a second one beside it.
 */
export const makeSharedJobs = <A>() => {
  const running = new Map<string, Running<A>>()

  const begin = (key: string, start: Start<A>): Running<A> => {
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

  const enter = async (key: string, start: Start<A>): Promise<Running<A>> => {
    for (;;) {
      const job = running.get(key)
      if (job === undefined) return begin(key, start)
      if (!job.controller.signal.aborted) return job
      await job.done.catch(() => {})
    }
  }

  const leave = async (job: Running<A>, report: Report): Promise<void> => {
    job.reports.delete(report)
    if (job.reports.size > 0) return
    job.controller.abort()
    await job.done.catch(() => {})
  }

  return async (key: string, start: Start<A>, report: Report, signal: AbortSignal): Promise<A> => {
    signal.throwIfAborted()
    const job = await enter(key, start)
    // a wrapper: two callers may pass the same function
    const own: Report = (done, total) => report(done, total)
    job.reports.add(own)
    const finished = new AbortController()
    const left = new Promise<never>((_, reject) => {
      const onAbort = () => leave(job, own).then(() => reject(signal.reason))
      signal.addEventListener("abort", onAbort, { once: true, signal: finished.signal })
      if (signal.aborted) onAbort()
    })
    try {
      return await Promise.race([job.done, left])
    } finally {
      finished.abort()
      job.reports.delete(own)
    }
  }
}
