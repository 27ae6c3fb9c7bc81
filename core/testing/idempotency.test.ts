import { fakeClock } from "./clock.ts"
import { fakeIdempotency } from "./idempotency.ts"
import { idempotencyContract } from "./idempotency-contract.ts"

idempotencyContract("the fake", async () => {
  const clock = fakeClock()
  return { idempotency: fakeIdempotency(clock), clock }
})
