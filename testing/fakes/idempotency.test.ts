import { idempotencyContract } from "../contracts/idempotency.ts"
import { fakeClock } from "./clock.ts"
import { type FakeReplies, fakeIdempotency } from "./idempotency.ts"

idempotencyContract("the fake", async () => {
  const clock = fakeClock()
  const rows: FakeReplies = new Map()
  return { idempotency: fakeIdempotency(clock, rows), second: fakeIdempotency(clock, rows), clock }
})
