import { Deferred, Effect, Exit, Scope } from "effect"
import { expect, vi } from "vitest"
import { keepWorking } from "../work/worker.ts"
import type { WorkFixture } from "./work-fixture.ts"

/** A worker as a process has it; answers its orderly stop. */
export const startWorker = ({ deps }: WorkFixture): (() => Promise<void>) => {
  const scope = Scope.makeUnsafe()
  Effect.runFork(Effect.forkScoped(keepWorking(deps)).pipe(Scope.provide(scope)))
  let stopped: Promise<void> | undefined
  return () => {
    stopped ??= Effect.runPromise(Scope.close(scope, Exit.void))
    return stopped
  }
}

/** The machine may have much else to do. */
export const patient = { timeout: 15_000, interval: 20 }

export const hasEnded = (deps: WorkFixture, id: string) =>
  vi.waitFor(async () => {
    const row = await deps.batch(id)
    expect(row.ended_at).not.toBeNull()
    return row
  }, patient)

export const isRunning = (deps: WorkFixture, id: string, atLeast = 0) =>
  vi.waitFor(
    async () => {
      const row = await deps.batch(id)
      expect([row.status, row.completed >= atLeast]).toEqual(["in_progress", true])
      return row
    },
    { ...patient, interval: 5 },
  )

/** Holds lines back until it is opened. */
export const makeDoor = () => {
  const door = Deferred.makeUnsafe<void>()
  return { pass: Deferred.await(door), open: () => Deferred.doneUnsafe(door, Effect.void) }
}
