import { expect, it } from "vitest"
import { commitNamed, publish } from "./testing/fake-hub.ts"
import { noise, sha256 } from "./testing/fixture.ts"
import { large, setUpHub } from "./testing/hub-fixture.ts"

const { hub, cdn, lockText, start } = setUpHub()
const [one, two] = [commitNamed("1"), commitNamed("2")]
const weights = noise(1_000_000)

it("a locked source is renewed on request only, without a download where the digest is the same", async () => {
  publish(hub(), cdn(), large(one, weights, ["main"]))
  await start().pull()
  publish(hub(), cdn(), large(two, weights, ["main"]))
  expect(await start().renew()).toBe(sha256(weights))
  expect(cdn().seen.length).toBe(1)
  expect(await lockText()).toContain(two)
  expect(await lockText()).not.toContain(one)

  const other = noise(200_000)
  publish(hub(), cdn(), large(commitNamed("3"), other, ["main"]))
  expect(await start().pull()).toBe(sha256(weights))
  expect(await start().renew()).toBe(sha256(other))
  expect(await start().pull()).toBe(sha256(other))
})
