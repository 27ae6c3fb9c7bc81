import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { Tenant } from "../../core/index.ts"
import { webhookContract } from "../../core/testing/webhook-contract.ts"
import { type Desk, openDesk } from "./test-desk.ts"
import type { Receiver } from "./test-receiver.ts"

const tenants: readonly [Tenant, Tenant, Tenant] = [
  { account: "acct_1", mode: "live" },
  { account: "acct_1", mode: "test" },
  { account: "acct_2", mode: "live" },
]
let desk: Desk
let receiver: Receiver
beforeAll(async () => {
  desk = await openDesk()
  receiver = await desk.receive()
})
afterAll(() => desk?.close())

/** One receiver has a path for each tenant. */
const received = () =>
  receiver.received.map(({ path, body }) => {
    const { event, data } = JSON.parse(body) as { readonly event: string; readonly data: unknown }
    return { tenant: tenants[Number(path.slice(1))]!, event, data }
  })

webhookContract(
  "webhook-http",
  Effect.promise(async () => {
    await desk.empty()
    receiver.received.length = 0
    for (const [n, tenant] of tenants.entries()) await desk.register(`http://${receiver.host}/${n}`, {}, tenant)
    return { webhook: desk.webhook, tenants, events: Effect.map(desk.drain, received), transaction: desk.house.database.transaction }
  }),
  25,
)
