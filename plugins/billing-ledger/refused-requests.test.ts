import { Effect, Exit } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { PortError } from "../../core/index.ts"
import { fakeClock } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { migrations } from "./migrations.ts"
import type { RefusedCall } from "./refused-calls.ts"
import { makeRefusedRequests } from "./refused-requests.ts"
import { usageSums } from "./usage-sums.ts"

let test: TestDatabase
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("billing-ledger", migrations))
})
afterAll(() => test.close())

const clock = fakeClock()
const refusedOf = (account: string, more: Partial<RefusedCall> = {}): RefusedCall => ({
  account,
  keyId: `key_of_${account}`,
  mode: "live",
  requestId: "req_1",
  endpoint: "chat.completions",
  model: undefined,
  httpStatus: 400,
  code: "invalid_request_error",
  message: "messages: is missing",
  ...more,
})
const errorsOf = async (account: string) => {
  const nowMs = clock.nowMs()
  const range = { fromMs: nowMs - 86_400_000, toMs: nowMs + 1, nowMs }
  const query = { account, mode: "live" as const, groupBy: [], ...range }
  return (await Effect.runPromise(usageSums(test.database, query)))[0]?.errors
}

it("keeps what the database can't take, and writes it once", async () => {
  const refused = makeRefusedRequests(test.database, clock, 10)
  const note = () => refused.note(refusedOf("a"))
  note()
  const down = vi
    .spyOn(test.database, "run")
    .mockReturnValue(Effect.fail(new PortError({ port: "database", message: "down" })))
  expect(Exit.isFailure(await Effect.runPromiseExit(refused.flush))).toBe(true)
  note()
  down.mockRestore()
  await Effect.runPromise(refused.flush)
  await Effect.runPromise(refused.flush)
  expect(await errorsOf("a")).toBe(2)
})

it("adds to the hour, of several processes too, and asks nothing of the database when there is nothing", async () => {
  const processes = [1, 2].map(() => makeRefusedRequests(test.database, clock, 10))
  for (const refused of processes) {
    refused.note(refusedOf("b", { endpoint: "embeddings", model: "svc-embed" }))
    await Effect.runPromise(refused.flush)
  }
  expect(await errorsOf("b")).toBe(2)
  const run = vi.spyOn(test.database, "run")
  await Effect.runPromise(processes[0]!.flush)
  expect(run).not.toHaveBeenCalled()
  run.mockRestore()
})

it("is bounded: beyond its rows it counts only what it knows", async () => {
  const refused = makeRefusedRequests(test.database, clock, 2)
  for (const account of ["c", "d", "e", "c"]) refused.note(refusedOf(account))
  await Effect.runPromise(refused.flush)
  expect(await Promise.all(["c", "d", "e"].map(errorsOf))).toEqual([2, 1, 0])
})

it("counts refusals by code, and those of limits only there", async () => {
  const refused = makeRefusedRequests(test.database, clock, 10)
  refused.note(refusedOf("f"))
  refused.noteLimit(refusedOf("f", { httpStatus: 429, code: "rate_limit_error" }))
  refused.noteLimit(refusedOf("f", { httpStatus: 429, code: "rate_limit_error" }))
  await Effect.runPromise(refused.flush)
  expect(await errorsOf("f")).toBe(1)
  const { rows } = await Effect.runPromise(
    test.database.run(() =>
      sql`SELECT code, requests FROM ledger_refusal_code WHERE account_id = 'f' ORDER BY code`.execute(
        test.database.queries(),
      ),
    ),
  )
  expect(rows).toEqual([
    { code: "invalid_request_error", requests: 1n },
    { code: "rate_limit_error", requests: 2n },
  ])
})
