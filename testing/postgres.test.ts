import { Effect } from "effect"
import { sql } from "kysely"
import { expect, test } from "vitest"
import { openTestDatabase } from "./postgres.ts"

test("each database is empty and its own", async () => {
  const [one, two] = await Promise.all([openTestDatabase(), openTestDatabase()])
  try {
    await Effect.runPromise(
      one.database.run(() => sql`create table only_here (id int)`.execute(one.database.queries())),
    )
    const tables = await Effect.runPromise(
      two.database.run(() => two.database.queries().introspection.getTables()),
    )
    expect(one.url).not.toBe(two.url)
    expect(tables).toEqual([])
  } finally {
    await Promise.all([one.close(), two.close()])
  }
})
