import "reflect-metadata/lite"
import { Effect } from "effect"
import { container } from "tsyringe"
import { expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import type { Backend, OpenRequest } from "../../core/ports/model.ts"
import { makeCatalogue } from "../../core/services/catalogue.ts"
import { servedModel } from "../../core/services/model-entry.ts"
import { provide, Tokens } from "../../core/tokens.ts"
import { fakeEntry } from "../../testing/index.ts"
import type { AssembledDeployment } from "./assemble.ts"
import { describeModels, shortfall } from "./served-models.ts"

const entry = fakeEntry("chat", {
  contextTokens: 81_920,
  maxOutputTokens: 16_384,
  modalities: ["text", "image"],
  capabilities: ["chat", "thinking"],
  price: { ...fakeEntry("chat").price, image: 25n },
})
const small = { contextTokens: 8_192, modalities: ["text"], capabilities: [] }

it("says in one line what config promises beyond the model, and nothing where they agree", () => {
  expect(shortfall(entry, servedModel(entry, small))).toBe(
    "a window of 8,192 tokens instead of 81,920; answers of up to 8,192 tokens instead of 16,384; no image input; no thinking; no price for images",
  )
  const able = {
    contextTokens: 100_000,
    modalities: ["text", "image", "audio"],
    capabilities: ["thinking", "tool_use"],
  }
  expect(shortfall(entry, servedModel(entry, able))).toBeUndefined()
})

it("describes the models whose files are here, and leaves the others unknown", async () => {
  const sources = [{ url: "file:here" }]
  const away = { ...entry, id: "away", sources: [{ url: "file:away" }] }
  const damaged = { ...entry, id: "damaged", sources }
  const silent = { ...entry, id: "silent", backend: "silent" }
  const adapters = [
    { id: "here", sources },
    { id: "away", sources: away.sources },
  ]
  const catalogue = makeCatalogue([{ ...entry, sources, adapters }, away, damaged, silent])
  const seen: OpenRequest["adapters"][] = []
  const describe: Backend["describe"] = ({ id, path, adapters: found }) => {
    seen.push(found)
    return id === "damaged"
      ? Effect.fail(apiError("backend_error", "the header is cut"))
      : Effect.succeed(path === "/here" ? small : undefined)
  }
  const child = container.createChildContainer()
  provide(child, Tokens.catalogue, catalogue)
  const found = (all: typeof sources) =>
    Effect.succeed(all[0]?.url === "file:here" ? { path: "/here" } : undefined)
  const deployment = {
    container: child,
    backends: [{ name: "fake", describe }, { name: "silent" }],
    modelFiles: { find: found },
  } as unknown as AssembledDeployment
  const known = await Effect.runPromise(describeModels(deployment))
  expect(seen).toEqual([[{ id: "here", path: "/here" }], []])
  expect(known.map(({ id }) => id)).toEqual([entry.id])
  const windows = catalogue.entries.map((one) => catalogue.served(one).contextTokens)
  expect(windows).toEqual([8_192, 0, 0, 0])
})
