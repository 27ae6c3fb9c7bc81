import "reflect-metadata/lite"
import { Effect, Schema } from "effect"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { provide, resolveAll, Tokens } from "../../core/tokens.ts"
import { callPathFixture, fakeChatModel, fakeWorkers } from "../../testing/index.ts"
import { plugin } from "./plugin.ts"
import { chatEndpoint } from "./testing/chat-endpoint.ts"

it("registers its endpoint with what the kernel lends", () => {
  const container = root.createChildContainer()
  const fixture = callPathFixture([fakeChatModel()])
  provide(container, Tokens.catalogue, fixture.catalogue)
  provide(container, Tokens.clock, fixture.clock)
  provide(container, Tokens.ids, fixture.ids)
  provide(container, Tokens.outbound, fixture.outbound)
  provide(container, Tokens.workers, fakeWorkers())
  plugin.create(Schema.decodeSync(plugin.settings)({}) as never).register?.(container)
  expect(resolveAll(container, Tokens.endpoints)).toMatchObject([
    {
      id: "chat.completions",
      method: "POST",
      path: "/v1/chat/completions",
      access: "key",
      maxBodyBytes: 8 * 2 ** 20,
      maxTextBytes: 8 * 2 ** 20,
      creates: true,
      batchable: true,
    },
    {
      id: "schemas.check",
      method: "POST",
      path: "/v1/schemas/check",
      access: "key",
      maxBodyBytes: 2 ** 20,
    },
  ])
})

it("takes large bodies where a chat model reads images, and for those only", () => {
  const fixture = callPathFixture([fakeChatModel({ entry: { modalities: ["text", "image"] } })])
  expect(chatEndpoint(fixture)).toMatchObject({
    maxBodyBytes: 50 * 2 ** 20,
    maxTextBytes: 8 * 2 ** 20,
  })
})

it("finds the schema checker of another plugin, whenever that comes", async () => {
  const container = root.createChildContainer()
  const fixture = callPathFixture()
  provide(container, Tokens.catalogue, fixture.catalogue)
  provide(container, Tokens.clock, fixture.clock)
  provide(container, Tokens.ids, fixture.ids)
  provide(container, Tokens.outbound, fixture.outbound)
  provide(container, Tokens.workers, fakeWorkers())
  plugin.create(Schema.decodeSync(plugin.settings)({}) as never).register?.(container)
  const check = () => fixture.ask(resolveAll(container, Tokens.endpoints)[1]!, { schema: {} })
  expect(await check()).toMatchObject({ status: 404, json: { code: "not_found" } })
  provide(container, Tokens.schemaChecker, {
    check: () => Effect.succeed({ accepted: true, keywords: [], compileMs: 1 }),
  })
  expect(await check()).toMatchObject({ status: 200, json: { accepted: true } })
})
