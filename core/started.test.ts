import { Effect } from "effect"
import { expect, it } from "vitest"
import { makeStarted } from "./started.ts"

it("refuses with 503 until the plugin has started, and then gives what it opened", () => {
  const [one, other] = [makeStarted<string>(), makeStarted<string>()]
  const refusal = { code: "server_starting", retryAfterMs: 2_000 }
  expect(Effect.runSync(Effect.flip(one.get))).toMatchObject(refusal)
  one.set("open")
  expect(Effect.runSync(one.get)).toBe("open")
  expect(Effect.runSync(Effect.flip(other.get))).toMatchObject(refusal)
})
