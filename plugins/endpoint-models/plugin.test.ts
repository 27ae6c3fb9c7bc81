import "reflect-metadata/lite"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { provide, resolveAll, Tokens } from "../../core/tokens.ts"
import { callPathFixture, fakeChatModel } from "../../testing/index.ts"
import { plugin } from "./plugin.ts"

it("registers its endpoints with what the kernel lends", () => {
  const container = root.createChildContainer()
  const fixture = callPathFixture([fakeChatModel()])
  provide(container, Tokens.catalogue, fixture.catalogue)
  provide(container, Tokens.clock, fixture.clock)
  plugin.create({}).register?.(container)
  expect(resolveAll(container, Tokens.endpoints)).toMatchObject([
    { id: "models.list", method: "GET", path: "/v1/models", access: "public", body: "none" },
    { id: "models.get", method: "GET", path: "/v1/models/{id}", access: "public", body: "none" },
  ])
})
