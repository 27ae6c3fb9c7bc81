import type { Report } from "../context.ts"

/** Lets the first report, the last, and at most one per `intervalMs` through. A listener that throws does not stop the pull. */
export const throttled = (report: Report, intervalMs: number, nowMs: () => number): Report => {
  let lastMs = Number.NEGATIVE_INFINITY
  let lastBytes = -1
  return (done, total) => {
    const now = nowMs()
    const last = done === total
    if ((!last && now - lastMs < intervalMs) || (last && lastBytes === done)) return
    lastMs = now
    lastBytes = last ? done : -1
    try {
      report(done, total)
    } catch {}
  }
}
