import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import {
  type AdmitRequest,
  costOf,
  defaultLimits,
  parsePrice,
  priceTag,
  type Settlement,
  type Usage,
  usageOf,
  uuidV7,
} from "../../../core/index.ts"
import { type FakeClock, fakeClock, fakeLog, fakeMetrics } from "../../../testing/index.ts"
import type { TestDatabase } from "../../../testing/postgres.ts"
import { type LedgerBilling, makeLedgerBilling } from "../ledger-billing.ts"
import { migrations } from "../migrations.ts"
import { verifyLedger } from "../proof/verify.ts"
import { makeReplica } from "../replica.ts"

const run = Effect.runPromise
const prices = parsePrice({
  input: 1500.000001,
  output: 6000.5,
  image: 25,
  audioSecond: 0.7,
  searchUnit: 2.5,
})

interface CallOptions {
  readonly account?: string
  readonly usage?: Usage
  readonly factor?: number
  readonly hold?: bigint
  readonly more?: Partial<AdmitRequest>
}
/** A ledger to verify; `fill` empties it and writes some history. */
export const openProofFixture = async ({ database }: TestDatabase) => {
  await run(database.migrate("billing-ledger", migrations))
  let clock: FakeClock
  let billing: LedgerBilling

  const query = async (text: RawBuilder<unknown>) =>
    (await run(database.run(() => text.execute(database.queries())))).rows
  const verify = () =>
    run(verifyLedger(database, { now: new Date(clock.nowMs()), leaseMs: 30_000, sweepMs: 10_000 }))

  const admit = async ({
    account = "acct_1",
    factor = 1,
    hold = 10_000_000n,
    more,
  }: CallOptions = {}) => {
    const caller = {
      tenant: { account, mode: "live" as const },
      keyId: `${account}-key`,
      scopes: ["*"],
      role: "user" as const,
      limits: { ...defaultLimits, concurrency: 100, monthlyCapMicros: 0n },
    }
    const priced = {
      model: "m",
      prices: priceTag(() => prices, ["m"], factor),
      expiresMs: clock.nowMs() + 600_000,
    }
    const request: AdmitRequest = {
      id: uuidV7(clock.nowMs()),
      caller,
      endpoint: "chat.completions",
      requestId: "r",
      holdMicros: hold,
      counts: "all",
      ...priced,
      ...more,
    }
    await run(billing.admit(request))
    return request.id
  }
  const pay = async ({
    usage = usageOf({ inputTokens: 10, outputTokens: 3 }),
    factor = 1,
    hold = 10_000_000n,
    ...rest
  }: CallOptions = {}) => {
    const id = await admit({ factor, hold, ...rest })
    const cost = costOf(() => prices, { m: usage }, factor)
    const settlement: Settlement = {
      id,
      outcome: "settled",
      costMicros: cost,
      usage: { m: usage },
      httpStatus: 200,
    }
    await run(billing.settle([settlement]))
    return id
  }

  const empty = async () => {
    await query(sql`ALTER TABLE ledger_transfer DISABLE TRIGGER ledger_transfer_append_only`)
    await query(
      sql`TRUNCATE ledger_account, ledger_key, ledger_call, ledger_usage, ledger_transfer, ledger_replica RESTART IDENTITY`,
    )
    await query(sql`ALTER TABLE ledger_transfer ENABLE TRIGGER ledger_transfer_append_only`)
  }
  /** Two accounts that were granted, charged and corrected, with one open call. */
  const fill = async () => {
    await empty()
    clock = fakeClock()
    const id = randomUUID()
    const settings = { maxGathered: 128, maxInFlight: 2, maxWaiting: 1000 }
    billing = makeLedgerBilling({
      database: database,
      clock,
      log: fakeLog(),
      metrics: fakeMetrics(),
      settings,
      replica: id,
    })
    await run(makeReplica(database, clock, id, 30_000).renew)
    for (const account of ["acct_1", "acct_2"]) {
      await run(
        billing.adjust({
          id: `grant-${account}`,
          account,
          amountMicros: 50_000_000n,
          reason: "Free credit",
        }),
      )
      await pay({ account })
      await run(
        billing.adjust({ id: `fix-${account}`, account, amountMicros: -1_000n, reason: "fix" }),
      )
      await pay({ account, factor: 0.5 })
    }
    await admit()
  }

  /** Breaks rows that the database itself would refuse to break. */
  const forced = async (...changes: RawBuilder<unknown>[]) => {
    const checks = (await query(
      sql`SELECT conrelid::regclass::text AS t, conname AS c FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text LIKE 'ledger\\_%'`,
    )) as {
      t: string
      c: string
    }[]
    const kept = (await query(
      sql`SELECT conrelid::regclass::text AS t, conname AS c, pg_get_constraintdef(oid) AS d FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text LIKE 'ledger\\_%'`,
    )) as { t: string; c: string; d: string }[]
    for (const { t, c } of checks) await query(sql.raw(`ALTER TABLE ${t} DROP CONSTRAINT ${c}`))
    await query(sql`ALTER TABLE ledger_transfer DISABLE TRIGGER ledger_transfer_append_only`)
    for (const change of changes) await query(change)
    await query(sql`ALTER TABLE ledger_transfer ENABLE TRIGGER ledger_transfer_append_only`)
    return async () => {
      for (const { t, c, d } of kept)
        await query(sql.raw(`ALTER TABLE ${t} ADD CONSTRAINT ${c} ${d} NOT VALID`))
    }
  }

  return {
    query,
    verify,
    admit,
    fill,
    forced,
    billing: () => billing,
    nowMs: () => clock.nowMs(),
  }
}

export type ProofFixture = Awaited<ReturnType<typeof openProofFixture>>
