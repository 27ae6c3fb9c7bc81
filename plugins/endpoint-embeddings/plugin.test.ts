import "reflect-metadata/lite"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { provide, resolveAll, Tokens } from "../../core/tokens.ts"
import { callPathFixture, fakeEmbedModel } from "../../testing/index.ts"
import { plugin } from "./plugin.ts"

it("registers its endpoint with what the kernel lends", () => {
  const container = root.createChildContainer()
  const fixture = callPathFixture([fakeEmbedModel()])
  provide(container, Tokens.catalogue, fixture.catalogue)
  plugin.create({ maxInputs: 64 }).register?.(container)
  expect(resolveAll(container, Tokens.endpoints)).toMatchObject([
    {
      id: "embeddings",
      method: "POST",
      path: "/v1/embeddings",
      access: "key",
      maxBodyBytes: 25 * 2 ** 20,
      creates: true,
      batchable: true,
    },
  ])
})
