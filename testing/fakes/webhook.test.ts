import { Effect } from "effect"
import { webhookContract } from "../contracts/webhook.ts"
import { fakeTransaction } from "./transaction.ts"
import { fakeWebhook } from "./webhook.ts"

webhookContract(
  "in memory",
  Effect.sync(() => {
    const webhook = fakeWebhook()
    return {
      webhook,
      tenants: [
        { account: "acc-1", mode: "live" },
        { account: "acc-1", mode: "test" },
        { account: "acc-2", mode: "live" },
      ] as const,
      events: Effect.sync(() => webhook.events),
      transaction: fakeTransaction,
    }
  }),
)
