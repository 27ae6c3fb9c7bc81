import { Cause, Effect, Exit } from "effect"
import { makeSingleFlight } from "../../../../core/single-flight.ts"
import type { Report } from "../context.ts"

type Start<A> = (report: Report, signal: AbortSignal) => Promise<A>

/**
 * A single flight for promises, whose callers all get its progress. An abort unsubscribes the
 * caller, and its promise rejects with the
 * reason; after the last caller the run is aborted and awaited first, so that no second run starts
 * beside it.
 */
export const makeSharedJobs = <A>() => {
  const flights = makeSingleFlight<A, unknown>()
  const listeners = new Map<string, Set<Report>>()

  const work = (key: string, start: Start<A>) =>
    Effect.callback<A, unknown>((resume, signal) => {
      const reportAll: Report = (done, total) => {
        // callers that wait for the end of an aborted run get none of its progress
        if (!signal.aborted) for (const report of listeners.get(key) ?? []) report(done, total)
      }
      const done = start(reportAll, signal).then(Effect.succeed, Effect.fail)
      done.then(resume)
      // an interruption waits for it
      return Effect.asVoid(Effect.promise(() => done))
    })

  return async (key: string, start: Start<A>, report: Report, signal: AbortSignal): Promise<A> => {
    signal.throwIfAborted()
    const listener: Report = (done, total) => {
      if (!signal.aborted) report(done, total)
    }
    const reports = listeners.get(key) ?? new Set()
    listeners.set(key, reports.add(listener))
    const exit = await Effect.runPromiseExit(flights.run(key, work(key, start)), { signal })
    reports.delete(listener)
    if (reports.size === 0) listeners.delete(key)
    if (Exit.isSuccess(exit)) return exit.value
    if (Cause.hasInterruptsOnly(exit.cause)) throw signal.reason
    throw Cause.squash(exit.cause)
  }
}
