import { Deferred, Effect, Exit, Scope } from "effect"
import { afterEach, beforeAll, expect, vi } from "vitest"
import { keepWorking } from "../work/worker.ts"
import { openWorkFixture, type WorkFixture, type WorkFixtureOptions } from "./work-fixture.ts"

/** Starts a worker as a server does. Returns its orderly stop. */
const startWorker = ({ deps }: WorkFixture): (() => Promise<void>) => {
  const scope = Scope.makeUnsafe()
  Effect.runFork(Effect.forkScoped(keepWorking(deps)).pipe(Scope.provide(scope)))
  let stopped: Promise<void> | undefined
  return () => {
    stopped ??= Effect.runPromise(Scope.close(scope, Exit.void))
    return stopped
  }
}

/** The machine may be busy. */
export const patient = { timeout: 15_000, interval: 20 }

const hasEnded = (fixture: WorkFixture, id: string) =>
  vi.waitFor(async () => {
    const row = await fixture.batch(id)
    expect(row.ended_at).not.toBeNull()
    return row
  }, patient)

const isRunning = (fixture: WorkFixture, id: string, atLeast = 0) =>
  vi.waitFor(
    async () => {
      const row = await fixture.batch(id)
      expect([row.status, row.completed >= atLeast]).toEqual(["in_progress", true])
      return row
    },
    { ...patient, interval: 5 },
  )

/** Waits until every call is settled or voided. */
export const noOpenCall = (fixture: WorkFixture) =>
  vi.waitFor(
    async () => expect((await fixture.calls()).filter(({ state }) => state === "open")).toEqual([]),
    patient,
  )

/** Holds lines back until it is opened. */
export const makeDoor = () => {
  const door = Deferred.makeUnsafe<void>()
  return { pass: Deferred.await(door), open: () => Deferred.doneUnsafe(door, Effect.void) }
}

/**
 * Workers on a fixture that each test opens; afterwards the workers stop, and the fixture closes.
 */
export const useWorkers = () => {
  let fixture: WorkFixture
  let stops: (() => Promise<void>)[] = []
  // the server of the test databases may have to start first
  beforeAll(async () => (await openWorkFixture()).close(), 120_000)
  afterEach(async () => {
    for (const stop of stops) await stop()
    stops = []
    await fixture?.close()
  })
  return {
    open: async (options: WorkFixtureOptions = {}): Promise<WorkFixture> => {
      fixture = await openWorkFixture(options)
      return fixture
    },
    work: (): (() => Promise<void>) => {
      const stop = startWorker(fixture)
      stops.push(stop)
      return stop
    },
    ended: (id: string) => hasEnded(fixture, id),
    running: (id: string, atLeast = 0) => isRunning(fixture, id, atLeast),
  }
}
