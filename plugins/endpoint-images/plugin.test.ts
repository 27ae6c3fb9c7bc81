import "reflect-metadata/lite"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { provide, resolveAll, Tokens } from "../../core/tokens.ts"
import { callPathFixture, fakeImageModel, fakeMetrics } from "../../testing/index.ts"
import { plugin } from "./plugin.ts"
import { wordSafety } from "./testing/open-client.ts"

const registered = () => {
  const container = root.createChildContainer()
  const fixture = callPathFixture([fakeImageModel()])
  provide(container, Tokens.catalogue, fixture.catalogue)
  provide(container, Tokens.clock, fixture.clock)
  provide(container, Tokens.log, fixture.log)
  provide(container, Tokens.metrics, fakeMetrics())
  plugin.create({}).register?.(container)
  return { container, fixture, endpoints: resolveAll(container, Tokens.endpoints) }
}

it("registers its endpoints with what the kernel lends", () => {
  const common = { method: "POST", access: "key", maxBodyBytes: 50 * 2 ** 20, batchable: true }
  expect(registered().endpoints).toMatchObject([
    { ...common, id: "images.generations", path: "/v1/images/generations", creates: true },
    { ...common, id: "images.edits", path: "/v1/images/edits", creates: true },
  ])
})

it("finds the image safety of another plugin, whenever that comes", async () => {
  const { container, fixture, endpoints } = registered()
  const ask = () => fixture.ask(endpoints[0]!, { model: "svc-iris", prompt: "buruk" })
  expect(await ask()).toMatchObject({ status: 200 })
  provide(container, Tokens.imageSafety, wordSafety({ prompt: "buruk" }).safety)
  expect(await ask()).toMatchObject({ status: 400, json: { code: "content_policy_violation" } })
})
