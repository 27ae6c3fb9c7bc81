import { chmod } from "node:fs/promises"
import { expect, it } from "vitest"
import { commitNamed, publish } from "./testing/fake-hub.ts"
import { noise, sha256 } from "./testing/fixture.ts"
import { large, setUpHub } from "./testing/hub-fixture.ts"

const { hub, cdn, lockFile, lockText, start } = setUpHub()
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

it("a locked source is not renewed where the lock file can't be written, which keeps what it was", async () => {
  publish(hub(), cdn(), large(one, weights, ["main"]))
  await start().pull()
  await chmod(lockFile(), 0o444)
  expect(await start().renew()).toBe(sha256(weights))
  publish(hub(), cdn(), large(two, noise(1000), ["main"]))
  const { renew, events } = start()
  expect(await renew()).toBe(
    `ModelFilesMissing: The lock file of model svc is not renewed: ${lockFile()} is read-only. What was pulled is in the cache, and not used.`,
  )
  expect(events()).toEqual(["model.lock_not_written"])
  expect(await start().pull()).toBe(sha256(weights))
})
