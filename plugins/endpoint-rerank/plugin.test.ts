import "reflect-metadata/lite"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { provide, resolveAll, Tokens } from "../../core/tokens.ts"
import { callPathFixture, fakeRerankModel } from "../../testing/index.ts"
import { plugin } from "./plugin.ts"

it("registers its endpoint with what the kernel lends", () => {
  const container = root.createChildContainer()
  const fixture = callPathFixture([fakeRerankModel()])
  provide(container, Tokens.catalogue, fixture.catalogue)
  provide(container, Tokens.ids, fixture.ids)
  plugin.create({}).register?.(container)
  expect(resolveAll(container, Tokens.endpoints)).toMatchObject([
    {
      id: "rerank",
      method: "POST",
      path: "/v1/rerank",
      aliases: ["/v2/rerank"],
      access: "key",
      maxBodyBytes: 25 * 2 ** 20,
      creates: true,
      batchable: true,
    },
  ])
})
