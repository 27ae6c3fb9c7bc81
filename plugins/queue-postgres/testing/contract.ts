import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { Database } from "../../../core/index.ts"
import { queueContract } from "../../../testing/contracts/queue.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { migrations } from "../migrations.ts"
import { openProcesses } from "./processes.ts"

/** The contract over a real database. `modelRuns`: the number of random schedules. */
export const runContract = (modelRuns: number): void => {
  let test: TestDatabase
  let second: Database
  beforeAll(async () => {
    test = await openTestDatabase()
    await Effect.runPromise(test.database.migrate("queue-postgres", migrations))
    second = await test.openAgain()
  })
  afterAll(() => test?.close())

  queueContract(
    "queue-postgres",
    Effect.suspend(() => openProcesses(test.database, second)),
    modelRuns,
  )
}
