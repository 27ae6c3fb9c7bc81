import { sql } from "kysely"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { openProofFixture, type ProofFixture } from "../testing/proof-fixture.ts"
import { mutations } from "../testing/proof-mutations.ts"

let test: TestDatabase
let ledger: ProofFixture
beforeAll(async () => {
  test = await openTestDatabase()
  ledger = await openProofFixture(test)
})
afterAll(() => test.close())
beforeEach(() => ledger.fill())

it("is clean, and says on how many rows", async () => {
  const { checked, faults } = await ledger.verify()
  expect(faults).toEqual([])
  expect(checked.length).toBeGreaterThan(15)
  expect(checked.map(({ rows }) => rows).filter((rows) => rows === 0)).toEqual([])
})

describe("finds, and names, exactly what is broken:", () => {
  it.each(Object.entries(mutations))("%s", async (name, [changes, expected, detail]) => {
    const repair = await ledger.forced(...changes)
    if (name === "a trigger that is off")
      await ledger.query(
        sql`ALTER TABLE ledger_transfer DISABLE TRIGGER ledger_transfer_append_only`,
      )
    try {
      const { faults } = await ledger.verify()
      expect([...new Set(faults.map(({ invariant }) => invariant))].sort()).toEqual(
        expected.toSorted(),
      )
      expect(faults.map((fault) => fault.detail).join("\n")).toMatch(detail)
    } finally {
      await repair()
    }
  })
})
