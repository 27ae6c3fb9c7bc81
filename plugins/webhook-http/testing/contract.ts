import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { Tenant } from "../../../core/index.ts"
import { webhookContract } from "../../../testing/contracts/webhook.ts"
import type { Receiver } from "../../../testing/receiver.ts"
import { type ApiFixture, openApiFixture } from "./api-fixture.ts"

const tenants: readonly [Tenant, Tenant, Tenant] = [
  { account: "acct_1", mode: "live" },
  { account: "acct_1", mode: "test" },
  { account: "acct_2", mode: "live" },
]

/**
 * The contract over a real database and a real receiver. `modelRuns`: the number of random
 * sequences.
 */
export const runContract = (modelRuns: number): void => {
  let api: ApiFixture
  let receiver: Receiver
  beforeAll(async () => {
    api = await openApiFixture()
    receiver = await api.receive()
    for (const [n, tenant] of tenants.entries())
      await api.register(`http://${receiver.host}/${n}`, {}, tenant)
  })
  afterAll(() => api?.close())

  /** One receiver has a path for each tenant. */
  const received = () =>
    receiver.received.map(({ path, body }) => {
      const { event, data } = JSON.parse(body) as { readonly event: string; readonly data: unknown }
      return { tenant: tenants[Number(path.slice(1))]!, event, data }
    })

  webhookContract(
    "webhook-http",
    Effect.sync(() => {
      receiver.received.length = 0
      return {
        webhook: api.webhook,
        tenants,
        events: Effect.map(api.drain, received),
        transaction: api.deps.database.transaction,
      }
    }),
    modelRuns,
  )
}
