import Stripe from "stripe"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { accountsOf } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"

const secret = "a secret of the payment provider"
const stripe = new Stripe("sk_test_unused")

let fixture: SessionFixture
let accounts: ReturnType<typeof accountsOf>
beforeAll(async () => {
  fixture = await openSessionFixture({ topUpSecret: secret })
  accounts = accountsOf(fixture)
})
afterAll(() => fixture?.close())

const send = (body: unknown, key = secret) => {
  const payload = typeof body === "string" ? body : JSON.stringify(body)
  const timestamp = Math.floor(fixture.clock.nowMs() / 1000)
  const signature = stripe.webhooks.generateTestHeaderString({ payload, secret: key, timestamp })
  return fixture.ask("POST", "/hooks/top-ups", Buffer.from(payload) as never, { signature })
}
let count = 0
const payment = (more: object = {}) => ({ id: `pay_${++count}`, amount_idr: 25_000, ...more })
const balanceOf = async (account: string) => (await fixture.billingOf(account)).balanceMicros

describe("a top-up", () => {
  it("is booked once, however often it comes, also at the same time", async () => {
    const { email, id } = await accounts.signUp({ verified: true })
    const paid = payment({ email: email.toUpperCase(), amount_idr: 25_000.5 })
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(paid)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(answers.filter(({ json }) => !json.already_booked)).toHaveLength(1)
    expect((await send(paid)).json).toEqual({
      object: "top_up",
      id: paid.id,
      account: id,
      amount_idr: 25_000.5,
      balance_idr: 75_000.5,
      already_booked: true,
    })
    expect(await balanceOf(id)).toBe(75_000_500_000n)
    const log = (await fixture.auditOf(id)).filter(({ action }) => action === "account.top_up")
    expect(log).toMatchObject([{ actor: "payments", after: { id: paid.id, amount_idr: 25_000.5 } }])
  })

  it("with the id of another one is refused", async () => {
    const { id } = await accounts.signUp({ verified: true })
    const paid = payment({ account: id })
    expect((await send(paid)).status).toBe(200)
    expect(await send({ ...paid, amount_idr: 1 })).toMatchObject({
      status: 409,
      json: { code: "conflict", param: "id" },
    })
    const other = await accounts.signUp({ verified: true })
    expect((await send({ ...paid, account: other.id })).status).toBe(409)
    expect(await balanceOf(id)).toBe(75_000_000_000n)
    expect(await balanceOf(other.id)).toBe(50_000_000_000n)
  })

  it("by an address is nobody's who has not confirmed it, until they do", async () => {
    const { email, id } = await accounts.signUp()
    const paid = payment({ email })
    expect(await send(paid)).toMatchObject({ status: 404, json: { param: "email" } })
    expect(await balanceOf(id)).toBe(50_000_000_000n)
    await accounts.post("verify-email", { token: fixture.mailedToken(email, "verify") })
    expect((await send(paid)).json).toMatchObject({ account: id, already_booked: false })
    const other = await accounts.signUp()
    expect((await send(payment({ account: other.id }))).status).toBe(200)
  })

  it("needs the secret's signature of this moment", async () => {
    const { id } = await accounts.signUp({ verified: true })
    expect((await send(payment({ account: id }), "another secret of 24 characters")).status).toBe(
      401,
    )
    const unsigned = Buffer.from(JSON.stringify(payment({ account: id })))
    expect((await fixture.ask("POST", "/hooks/top-ups", unsigned as never)).status).toBe(401)
    expect(await balanceOf(id)).toBe(50_000_000_000n)
  })

  it.each<[string, object | string, number, string | undefined]>([
    ["no JSON", "{", 400, undefined],
    ["a list", "[]", 400, undefined],
    ["no id", { amount_idr: 1, email: "a@example.com" }, 400, "id"],
    ["an id with a space", { id: "a b", amount_idr: 1, email: "a@example.com" }, 400, "id"],
    ["no amount", { id: "a", email: "a@example.com" }, 400, "amount_idr"],
    ["an amount of 0", { id: "a", amount_idr: 0, email: "a@example.com" }, 400, "amount_idr"],
    ["an amount below 0", { id: "a", amount_idr: -5, email: "a@example.com" }, 400, "amount_idr"],
    ["an amount as a text", { id: "a", amount_idr: "5", email: "a@x.com" }, 400, "amount_idr"],
    ["nobody", { id: "a", amount_idr: 1 }, 400, "account"],
    ["both", { id: "a", amount_idr: 1, account: "a", email: "a@example.com" }, 400, "account"],
    ["an unknown account", { id: "a", amount_idr: 1, account: "acct_x" }, 404, "account"],
    ["an unknown address", { id: "a", amount_idr: 1, email: "no@example.com" }, 404, "email"],
    ["an id that is none", { id: "a", amount_idr: 1, account: "a\0b" }, 404, "account"],
    ["no address", { id: "a", amount_idr: 1, email: "what" }, 404, "email"],
  ])("with %s is refused, and may be sent again mended", async (_, body, status, param) => {
    const { json, ...answer } = await send(body)
    expect([answer.status, json.param ?? undefined]).toEqual([status, param])
  })

  it("beyond the largest balance is refused, and can be sent later", async () => {
    const { id } = await accounts.signUp({ verified: true })
    const paid = payment({ account: id, amount_idr: 1e12 })
    expect((await send(paid)).json).toMatchObject({ param: "amount_idr", code: "conflict" })
    expect((await send({ ...paid, amount_idr: 1000 })).status).toBe(200)
  })
})

it("is unknown to a server without a secret", async () => {
  const plain = await openSessionFixture()
  const body = Buffer.from(JSON.stringify(payment({ account: "a" })))
  expect((await plain.ask("POST", "/hooks/top-ups", body as never)).status).toBe(404)
  await plain.close()
})
