import { Effect } from "effect"
import fc from "fast-check"
import { sql } from "kysely"
import { expect, it } from "vitest"
import { openFixture } from "./testing/fixture.ts"
import { counts, dayMs, makeLifeCycle, type Step, step } from "./testing/life-cycle-model.ts"

/** An example, as random steps may never complete an upload. */
const wholeUpload: Step[] = [
  { kind: "upload", size: 100 },
  { kind: "finish", pick: 0, size: 1 },
]

/** An example, as random steps may never wait until an upload's row is deleted. */
const forgottenUpload: Step[] = [
  { kind: "upload", size: 100 },
  { kind: "cancel", pick: 0, size: 1 },
  { kind: "wait", ms: 20 * dayMs },
  { kind: "sweep" },
  { kind: "cancel", pick: 0, size: 1 },
  { kind: "wait", ms: 20 * dayMs },
  { kind: "sweep" },
  { kind: "cancel", pick: 0, size: 1 },
]

it("files and uploads follow a simple model, whatever happens in whatever order", async () => {
  const test = await openFixture()
  const tables = [
    "files_file",
    "files_upload",
    "files_part",
    "files_incoming",
    "files_trash",
    "files_usage",
  ]
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      for (const table of tables)
        await sql`DELETE FROM ${sql.table(table)}`.execute(test.deps.database.queries())
      for (const key of await test.blobs()) await Effect.runPromise(test.deps.storage.remove(key))
      const cycle = makeLifeCycle(test)
      for (const todo of steps) {
        await cycle.run(todo)
        await cycle.check()
      }
    }),
    { numRuns: 40, endOnFailure: true, examples: [[wholeUpload], [forgottenUpload]] },
  )
  await test.close()
  expect(counts.completed).toBeGreaterThan(0)
}, 120_000)
