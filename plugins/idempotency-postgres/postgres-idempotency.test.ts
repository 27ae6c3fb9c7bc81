import { Effect } from "effect"
import { idempotencyContract } from "../../core/testing/idempotency-contract.ts"
import { fakeClock } from "../../core/testing/index.ts"
import { openTestDatabase } from "../../runtime/testing/test-database.ts"
import { migrations } from "./migrations.ts"
import { makePostgresIdempotency } from "./postgres-idempotency.ts"

idempotencyContract("idempotency-postgres", async () => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("idempotency-postgres", migrations))
  const clock = fakeClock()
  return { idempotency: makePostgresIdempotency(test.database, clock), clock, close: () => test.close() }
})
