import { Effect, Exit } from "effect"
import { expect, it } from "vitest"
import { type Database, PortError } from "../../core/index.ts"
import { makeStatements } from "./statements.ts"

const failure = (code: string) =>
  new PortError({
    port: "database",
    message: code,
    cause: Object.assign(new Error(code), { code }),
  })

/** The first `failures` runs of a statement fail. */
const failing = (failures: number, code: string) => {
  let runs = 0
  const run = () =>
    Effect.suspend(() =>
      ++runs <= failures ? Effect.fail(failure(code)) : Effect.succeed({ rows: [] }),
    )
  const statements = makeStatements({ run } as unknown as Database)
  return { balance: Effect.exit(statements.balance("acc")), runs: () => runs }
}

it.each([
  ["once", 1, 2, true],
  ["four times", 4, 5, true],
  ["again and again", 9, 5, false],
])("runs a statement again that a deadlock ended %s", async (_, failures, runs, succeeds) => {
  const statement = failing(failures, "40P01")
  expect(Exit.isSuccess(await Effect.runPromise(statement.balance))).toBe(succeeds)
  expect(statement.runs()).toBe(runs)
})

it("runs a statement once that failed for another reason", async () => {
  const statement = failing(1, "23505")
  expect(Exit.isSuccess(await Effect.runPromise(statement.balance))).toBe(false)
  expect(statement.runs()).toBe(1)
})
