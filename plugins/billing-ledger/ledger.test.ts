import { Effect, Exit } from "effect"
import { sql } from "kysely"
import { describe, expect, it } from "vitest"
import { type AdmitRequest, type Database, uuidV7 } from "../../core/index.ts"
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
import { settlementOf } from "./testing/plain-ledger.ts"

useAccountFixture()

const remaining = async () => (await run(ledger.admit({ ...call(), counts: "peek" }))).remaining
const query = async <Row>(text: ReturnType<typeof sql<Row>>) =>
  (await run(test.database.run(() => text.execute(test.database.queries())))).rows

describe("ledger", () => {
  it("keeps the minute exact when several of its calls are given back in one statement", async () => {
    const ids: string[] = []
    for (let i = 0; i < 8; i++) {
      ids.push(await admit())
      clock.advance(1000)
    }
    await run(
      test.database.transaction((tx) =>
        ledger.settle(
          [1, 3, 4, 6].map((i) => settlementOf(ids[i]!, "refused")),
          tx,
        ),
      ),
    )
    const left = []
    clock.advance(52_000)
    for (let i = 0; i < 8; i++) {
      left.push(await remaining())
      clock.advance(1000)
    }
    expect(left).toEqual([57, 57, 58, 58, 58, 59, 59, 60])
  })

  it.each([
    ["a mode", { mode: "lively" }, {}],
    ["counts", { counts: "some" }, {}],
    ["a hold below zero", { hold_micros: "-1" }, {}],
    ["an outcome", {}, { outcome: "open" }],
  ])("refuses %s that there is not, and keeps nothing of the statement", async (_, asks, ends) => {
    const id = uuidV7(clock.nowMs())
    const now = new Date(clock.nowMs())
    const owner = { account_id: account, key_id: account, mode: "live", counts: "all" }
    const limits = { rpm: 9, rpd: 9, slots: 9, cap_micros: "0", hold_micros: "0" }
    const request = { place: 0, id, ...owner, ...limits, endpoint: "e", request_id: "r", ...asks }
    const settlement = { id, outcome: "voided", usage: {}, http_status: 500, ...ends }
    const states = () => query(sql`SELECT state FROM ledger_call WHERE id = ${id}`)
    const admits = query(
      sql`SELECT refusal FROM ledger_admit(${JSON.stringify([request])}, ${id}, ${now})`,
    )
    if (Object.keys(ends).length === 0) {
      await expect(admits).rejects.toThrow(/violates/)
      expect(await states()).toEqual([])
      return
    }
    expect(await admits).toEqual([{ refusal: null }])
    await expect(
      query(sql`SELECT ledger_settle(${JSON.stringify([settlement])}, ${now})`),
    ).rejects.toThrow(/violates/)
    expect(await states()).toEqual([{ state: "open" }])
  })

  it("says how long slot and hold took, of what it admits and not of what only looks", async () => {
    const { holdMs } = await run(ledger.admit(call()))
    expect(holdMs).toBeGreaterThan(0)
    expect(await run(ledger.admit({ ...call(), counts: "peek" }))).not.toHaveProperty("holdMs")
  })

  it("settles, voids and grants together with the caller's own rows, or not at all", async () => {
    await run(grant(100n))
    const [first, second] = [await admit(call(10n)), await admit(call(20n))]
    const work = (fails: boolean) =>
      test.database.transaction((tx) =>
        ledger
          .settle([settlementOf(first, "settled", 4n)], tx)
          .pipe(
            Effect.andThen(ledger.settle([settlementOf(second, "settled", 5n)], tx)),
            Effect.andThen(
              ledger.adjust({ id: `${account}-tx`, account, amountMicros: 1n, reason: "test" }, tx),
            ),
            Effect.andThen(fails ? Effect.fail("no") : Effect.void),
          ),
      )
    await Effect.runPromiseExit(work(true))
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 100n, heldMicros: 30n })
    await run(work(false))
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 92n, heldMicros: 0n })
  })

  it("writes both legs with the running balance, and nobody can change them", async () => {
    await run(grant(100n))
    await run(ledger.settle([settlementOf(await admit(call(10n)), "settled", 7n)]))
    await run(grant(-3n))
    const rows = await query(
      sql`SELECT debit_account, credit_account, amount_micros, balance_micros, type FROM ledger_transfer WHERE account_id = ${account} ORDER BY id`,
    )
    expect(rows).toEqual([
      {
        debit_account: "@grants",
        credit_account: account,
        amount_micros: 100n,
        balance_micros: 100n,
        type: "grant",
      },
      {
        debit_account: account,
        credit_account: "@revenue",
        amount_micros: 7n,
        balance_micros: 93n,
        type: "charge",
      },
      {
        debit_account: account,
        credit_account: "@grants",
        amount_micros: 3n,
        balance_micros: 90n,
        type: "adjustment",
      },
    ])
    for (const change of [
      sql`UPDATE ledger_transfer SET amount_micros = 1`,
      sql`DELETE FROM ledger_transfer`,
      sql`TRUNCATE ledger_transfer`,
    ])
      await expect(query(change)).rejects.toThrow("append-only")
  })

  it("an id that was admitted before fails alone, and its call stays open", async () => {
    await run(grant(100n))
    const id = await admit(call(10n))
    const requests = [
      call(1n),
      call(1n),
      call(1n),
      call(1n, id),
      call(1n),
      call(1n, "no uuid"),
      call(1n),
    ]
    const exits = await run(
      Effect.forEach(requests, (request) => Effect.exit(ledger.admit(request)), {
        concurrency: "unbounded",
      }),
    )
    expect(exits.map(Exit.isSuccess)).toEqual([true, true, true, false, true, false, true])
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 100n, heldMicros: 15n })
  })

  it("lines of a batch share a statement of admission though they come one after the other; a call that somebody waits for goes out at once", async () => {
    let statements = 0
    const counting: Database = {
      ...test.database,
      run: (query) => {
        statements += 1
        return test.database.run(query)
      },
    }
    const counted = ledgerOn(counting)
    const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    const three = (more: Partial<AdmitRequest>) =>
      run(
        Effect.forEach(
          [0, 1, 2],
          (n) =>
            Effect.andThen(
              Effect.forEach(new Array(n).fill(0), () => turn),
              counted.admit({ ...call(), ...more }),
            ),
          { concurrency: 3 },
        ),
      )
    await three({ counts: "money", parent: "batch_1" })
    expect(statements).toBe(1)
    await three({})
    expect(statements).toBeGreaterThan(2)
  })

  it("takes no money from what was never admitted", async () => {
    await run(grant(100n))
    await run(ledger.settle([settlementOf(uuidV7(0), "settled", 50n)]))
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 100n, heldMicros: 0n })
  })

  it("parallel settlements of one call take money once", async () => {
    await run(grant(100n))
    const id = await admit(call(10n))
    await run(
      Effect.forEach(
        Array(40).fill(id),
        (each: string) => ledger.settle([settlementOf(each, "settled", 4n)]),
        { concurrency: "unbounded" },
      ),
    )
    expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 96n, heldMicros: 0n })
  })

  it("two ledgers that admit and settle the same accounts in opposite order don't deadlock", async () => {
    const other = ledgerOn(test.database)
    const accounts = Array.from({ length: 10 }, (_, i) => `${account}-${i}`)
    const of = (name: string) => ({
      ...call(),
      caller: { ...call().caller, tenant: { account: name, mode: "live" as const }, keyId: name },
    })
    const rounds = Array.from({ length: 20 }, (_, i) => (i % 2 ? accounts : accounts.toReversed()))
    const both = (names: readonly string[]) =>
      names.flatMap((name) => [ledger, other].map((billing) => ({ billing, request: of(name) })))
    const work = ({ billing, request }: ReturnType<typeof both>[number]) =>
      Effect.andThen(billing.admit(request), billing.settle([settlementOf(request.id, "refused")]))
    await run(Effect.forEach(rounds.flatMap(both), work, { concurrency: 100, discard: true }))
    expect(
      await query(
        sql`SELECT 1 FROM ledger_key WHERE key_id LIKE ${`${account}-%`} AND (open_calls <> 0 OR calls <> 0)`,
      ),
    ).toEqual([])
  })
})
