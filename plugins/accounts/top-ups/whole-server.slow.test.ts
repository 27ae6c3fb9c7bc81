import Stripe from "stripe"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../../testing/platform.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"

/** Payments on the real ledger, over HTTP, with a server that is killed among them. */
const secret = "a secret of the payment provider"
const stripe = new Stripe("sk_test_unused")
let test: TestDatabase
let platform: Platform
const own = {
  RAKIT_TOP_UP_SECRET: secret,
  RAKIT_ADMIN_EMAIL: "root@example.com",
  RAKIT_ADMIN_PASSWORD: "correct horse",
}
const start = async () => {
  platform = await startPlatform({ database: new URL(test.url), env: own, ready: false })
}
beforeAll(async () => {
  test = await openTestDatabase()
  await start()
}, 120_000)
afterAll(async () => {
  await platform?.close()
  await test?.close()
})

const pay = async (id: string, amount_idr: number) => {
  const payload = JSON.stringify({ id, email: own.RAKIT_ADMIN_EMAIL, amount_idr })
  const signature = stripe.webhooks.generateTestHeaderString({ payload, secret })
  const reply = await fetch(`${platform.url}/hooks/top-ups`, {
    method: "POST",
    headers: { "svc-signature": signature },
    body: payload,
  })
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into it
  return { status: reply.status, json: (await reply.json()) as any }
}
const balance = async () => {
  const { status, json } = await pay("the_first", 1)
  expect(status).toBe(200)
  return json.balance_idr as number
}

it("each is booked once, though each comes twice and the server is killed meanwhile", async () => {
  const before = await balance()
  const ids = Array.from({ length: 60 }, (_, n) => `pay_${n}`)
  const sent = ids.flatMap((id) => [pay(id, 10), pay(id, 10)])
  await Promise.race(sent)
  await platform.stop("SIGKILL")
  const answers = await Promise.allSettled(sent)
  expect(answers.some(({ status }) => status === "rejected")).toBe(true)
  await platform.close()
  await start()
  const again = await Promise.all(ids.map((id) => pay(id, 10)))
  expect(new Set(again.map(({ status }) => status))).toEqual(new Set([200]))
  expect(await balance()).toBe(before + 600)
  expect((await pay("pay_0", 11)).status).toBe(409)
  expect(await balance()).toBe(before + 600)
}, 120_000)
