import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { accountsOf } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"
import { mailLowBalances } from "./watch.ts"

let fixture: SessionFixture
let accounts: ReturnType<typeof accountsOf>
beforeAll(async () => {
  fixture = await openSessionFixture()
  accounts = accountsOf(fixture)
})
afterAll(() => fixture?.close())

const watch = () => Effect.runPromise(mailLowBalances(fixture.deps))
const adjust = (account: string, idr: number) =>
  Effect.runPromise(
    fixture.billing.adjust({
      id: fixture.deps.ids.make("grant_"),
      account,
      amountMicros: BigInt(idr) * 1_000_000n,
      reason: "test",
    }),
  )
const ask = (token: string, low_balance_idr: unknown) =>
  accounts.post("low-balance", { low_balance_idr }, { token })

/** An account with Rp 50,000 whose key was just used. */
const active = async () => {
  const { email, id } = await accounts.signUp({ verified: true })
  const token = await accounts.signIn(email)
  const key = await fixture.ask("POST", "/dashboard/keys", { name: "k" }, { token })
  await Effect.runPromise(
    fixture.deps.keys.markUsed(new Map([[key.json.id, fixture.clock.nowMs()]])),
  )
  const mails = () =>
    accounts.mailsTo(email).filter(({ subject }) => /balance is low/.test(subject))
  return { email, id, token, mails }
}

describe("a mail about a low balance", () => {
  it("is sent once each time that the balance falls below what was asked for", async () => {
    const { id, token, mails } = await active()
    expect((await ask(token, 20_000)).json.low_balance_idr).toBe(20_000)
    expect(await watch()).toBe(0)
    await adjust(id, -40_000)
    expect(await Promise.all([watch(), watch()]).then(([a, b]) => a + b)).toBe(1)
    expect(mails()).toHaveLength(1)
    expect(mails()[0]?.text).toMatch(/is Rp 10,000, below the Rp 20,000/)
    await adjust(id, -1000)
    expect(await watch()).toBe(0)
    await adjust(id, 30_000)
    expect(await watch()).toBe(0)
    await adjust(id, -30_000)
    expect(await watch()).toBe(1)
    expect(mails()).toHaveLength(2)
  })

  it("is sent to nobody who did not ask, or no longer does", async () => {
    const [{ id }, other] = [await active(), await active()]
    await ask(other.token, 20_000)
    await ask(other.token, null)
    for (const account of [id, other.id]) await adjust(account, -49_000)
    expect(await watch()).toBe(0)
    expect((await accounts.me(other.token)).json.low_balance_idr).toBeNull()
  })

  it.each([0, -1, 1e13, 0.1234567, "20000", undefined])("can't be asked for at %j", async (idr) => {
    const { token } = await active()
    expect(await ask(token, idr)).toMatchObject({
      status: 400,
      json: { param: "low_balance_idr" },
    })
  })
})
