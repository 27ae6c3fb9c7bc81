import "reflect-metadata/lite"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { fakeChatModel, fakeHouse } from "../../core/testing/index.ts"
import { provide, resolveAll, Tokens } from "../../core/tokens.ts"
import { plugin } from "./plugin.ts"

it("registers its endpoint with what the kernel lends", () => {
  const container = root.createChildContainer()
  const house = fakeHouse([fakeChatModel()])
  provide(container, Tokens.catalogue, house.catalogue)
  provide(container, Tokens.clock, house.clock)
  provide(container, Tokens.ids, house.ids)
  plugin.register?.(container, {})
  expect(resolveAll(container, Tokens.endpoints)).toMatchObject([
    { id: "chat.completions", method: "POST", path: "/v1/chat/completions", access: "key", maxBodyBytes: 50 * 2 ** 20, creates: true, batchable: true },
  ])
})
