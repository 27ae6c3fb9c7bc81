import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { sql } from "kysely"
import { describe, expect, it } from "vitest"
import { type Database, PortError, usageOf } from "../../core/index.ts"
import { makeSettlementJournal } from "./settlement-journal.ts"
import {
  account,
  admit,
  call,
  clock,
  grant,
  ledger,
  ledgerOn,
  run,
  test,
  useAccountFixture,
} from "./testing/account-fixture.ts"
import { plainLedger, settlementOf } from "./testing/plain-ledger.ts"

useAccountFixture()

describe("when the database does not answer", () => {
  const lost = new PortError({
    port: "database",
    message: "Connection terminated unexpectedly",
    cause: new Error("Connection terminated unexpectedly"),
  })
  /** The statement runs, its answer is lost. */
  const losing = (answers: { lose: boolean }): Database => ({
    ...test.database,
    run: (statement) =>
      Effect.flatMap(test.database.run(statement), (answer) =>
        answers.lose ? Effect.fail(lost) : Effect.succeed(answer),
      ),
  })

  it("a lost admission is given back a minute later, for its statement may still be running", async () => {
    await run(grant(100n))
    const answers = { lose: true }
    const ledger = ledgerOn(losing(answers))
    expect(await Effect.runPromiseExit(ledger.admit(call(10n)))).toMatchObject({ _tag: "Failure" })
    answers.lose = false
    await run(ledger.closeInDoubt)
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 100n, heldMicros: 10n })
    clock.advance(60_000)
    await run(ledger.closeInDoubt)
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 100n, heldMicros: 0n })
  })

  it("a settlement is kept, and charged once when the database is back", async () => {
    await run(grant(100n))
    const [id, free] = [await admit(call(10n)), await admit(call(10n))]
    const gone: Database = { ...test.database, run: () => Effect.fail(lost) }
    const answers = { database: gone }
    const ledger = ledgerOn({
      ...test.database,
      run: (statement) => answers.database.run(statement),
    })
    await run(ledger.settle([settlementOf(id, "settled", 4n)]))
    await run(ledger.settle([settlementOf(id, "settled", 5n), settlementOf(free, "voided")]))
    expect(ledger.kept.size()).toBe(2)
    expect(await Effect.runPromiseExit(ledger.kept.settleAll)).toMatchObject({ _tag: "Failure" })
    answers.database = test.database
    await run(ledger.kept.settleAll)
    expect(ledger.kept.size()).toBe(0)
    await run(ledger.settle([settlementOf(id, "settled", 6n)]))
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 96n, heldMicros: 0n })
  })

  it("a settlement that had arrived after all counts once", async () => {
    await run(grant(100n))
    const id = await admit(call(10n))
    const answers = { lose: true }
    const ledger = ledgerOn(losing(answers))
    await run(ledger.settle([settlementOf(id, "settled", 4n)]))
    answers.lose = false
    await run(ledger.kept.settleAll)
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 96n, heldMicros: 0n })
  })

  it("what the ledger refuses among what was kept is voided, and the rest is charged", async () => {
    await run(grant(100n))
    const [bad, good] = [await admit(call(10n)), await admit(call(10n))]
    const answers = { database: { ...test.database, run: () => Effect.fail(lost) } as Database }
    const ledger = ledgerOn({
      ...test.database,
      run: (statement) => answers.database.run(statement),
    })
    const usage = { m: { ...usageOf({}), inputTokens: "\0" as unknown as number } }
    await run(
      ledger.settle([
        { ...settlementOf(bad, "settled", 1n), usage },
        settlementOf(good, "settled", 4n),
      ]),
    )
    answers.database = test.database
    await run(ledger.kept.settleAll)
    await run(ledger.closeInDoubt)
    expect(ledger.kept.size()).toBe(0)
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 96n, heldMicros: 0n })
  })

  const forget = (id: string) =>
    test.database.transaction((tx) =>
      test.database.run(() =>
        sql`WITH c AS (DELETE FROM ledger_call WHERE id = ${id} RETURNING *), k AS (UPDATE ledger_key SET calls = ledger_key.calls - 1, day_calls = day_calls - 1, open_calls = open_calls - 1, held_micros = ledger_key.held_micros - hold_micros FROM c WHERE ledger_key.key_id = c.key_id AND counts = 'all')
            UPDATE ledger_account SET held_micros = held_micros - hold_micros FROM c WHERE ledger_account.account_id = c.account_id`.execute(
          test.database.queries(tx),
        ),
      ),
    )

  it.each([true, false])(
    "a call whose server was killed, too, is charged by the next one, once (journal first: %s)",
    async (journalFirst) => {
      await run(grant(100n))
      const folder = await mkdtemp(join(tmpdir(), "rakit-outage-"))
      const journal = makeSettlementJournal(folder, "killed")
      const answers = { database: test.database }
      const database: Database = {
        ...test.database,
        run: (statement) => answers.database.run(statement),
      }
      const killed = plainLedger(database, clock, { journal, journalFirst })
      const request = call(10n)
      await run(killed.admit(request))
      answers.database = { ...test.database, run: () => Effect.fail(lost) }
      await run(killed.settle([settlementOf(request.id, "settled", 4n)]))
      await run(journal.close)
      await run(forget(request.id))
      const next = plainLedger(test.database, clock, {
        journal: makeSettlementJournal(folder, "next"),
      })
      for (let time = 1; time <= 2; time++) {
        await run(next.kept.adopt(() => true))
        await run(next.kept.settleAll)
        expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 96n, heldMicros: 0n })
      }
      await rm(folder, { recursive: true })
    },
  )

  it("a call that a crash of the database has forgotten is admitted again and charged, once", async () => {
    await run(grant(100n))
    const [forgotten, lines] = [
      await admit(call(10n)),
      await admit({ ...call(10n), counts: "money" }),
    ]
    await run(forget(forgotten))
    await run(forget(lines))
    await run(ledger.settle([settlementOf(forgotten, "settled", 4n)]))
    await run(
      test.database.transaction((tx) => ledger.settle([settlementOf(lines, "settled", 5n)], tx)),
    )
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 91n, heldMicros: 0n })
    await run(ledger.settle([settlementOf(forgotten, "settled", 4n)]))
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 91n, heldMicros: 0n })
    const unknown = call(10n).id
    await run(ledger.settle([settlementOf(unknown, "settled", 4n)]))
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 91n, heldMicros: 0n })
  })

  it("one whose account has nothing left is not charged", async () => {
    await run(grant(10n))
    const id = await admit(call(10n))
    await run(
      test.database.run(() =>
        sql`WITH c AS (DELETE FROM ledger_call WHERE id = ${id}) UPDATE ledger_account SET held_micros = 0, balance_micros = 3 WHERE account_id = ${account}`.execute(
          test.database.queries(),
        ),
      ),
    )
    await run(ledger.settle([settlementOf(id, "settled", 4n)]))
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 3n, heldMicros: 0n })
  })
})
