import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, expect, it } from "vitest"
import { provide, resolve, type Token, Tokens } from "../../core/tokens.ts"
import { fakeLog } from "../../testing/index.ts"
import { loadConfig } from "../config/load.ts"
import { assemble } from "./assemble.ts"
import { originOf } from "./models.ts"
import { startDeployment } from "./start.ts"

const root = join(import.meta.dirname, "../..")
const folder = mkdtempSync(join(tmpdir(), "rakit-offers-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A package whose plugin brings these models; modules are cached by name. */
const writePackage = (
  name: string,
  offers: readonly unknown[],
  provides = "[Tokens.models]",
  adapters: readonly unknown[] = [],
) => {
  const at = join(folder, name)
  mkdirSync(at, { recursive: true })
  const manifest = { name, version: "1.0.0", type: "module", exports: "./plugin.ts" }
  writeFileSync(join(at, "package.json"), JSON.stringify(manifest))
  writeFileSync(
    join(at, "plugin.ts"),
    `import { definePlugin, ModelOfferSettings, provide, Tokens } from "${root}/core/index.ts"
export const plugin = definePlugin({
  name: "${name}", api: 1, about: "models", settings: ModelOfferSettings, needs: [], provides: ${provides},
  create: (settings) => ({
    register: (container) => {
      for (const offer of ${JSON.stringify(offers)}) provide(container, Tokens.models, { ...offer, ...settings })
      for (const adapter of ${JSON.stringify(adapters)}) provide(container, Tokens.adapters, adapter)
    },
  }),
})
`,
  )
}

const offer = (id: string, more: object = {}) => ({
  id,
  task: "chat",
  backend: "fake",
  limits: { contextTokens: 1024, maxOutputTokens: 256 },
  price: { input: 100, output: 400 },
  sources: [{ url: "file:./weights.gguf" }],
  ...more,
})

const fake = `${join(root, "testing/fakes/backend.ts")}: {}`

const assembled = (plugins: string, models = "[]") => {
  const file = join(folder, "rakit.yaml")
  writeFileSync(
    file,
    `dataDir: ${folder}/data\nplugins:\n  ${fake}\n  endpoint-chat: {}\n  endpoint-models: {}\n  billing-free: {}\n  identity-static: { keys: [] }\n${plugins}models: ${models}\n`,
  )
  return Effect.runPromise(Effect.scoped(assemble(loadConfig(file, {}), "command", fakeLog())))
}

it("adds a package's model, whose files are beside its module", async () => {
  writePackage("rakit-model-a", [offer("a"), offer("a-small")])
  const { container, models } = await assembled("  ./rakit-model-a/plugin.ts: {}\n")
  const catalogue = resolve(container, Tokens.catalogue)
  expect(catalogue.entries.map(({ id }) => id)).toEqual(["a", "a-small"])
  expect(catalogue.entry("a")).toMatchObject({
    contextTokens: 1024,
    tier: "standard",
    price: { input: 100_000_000_000n },
    sources: [{ url: `file:${join(folder, "rakit-model-a/weights.gguf")}` }],
  })
  expect(models.map(({ plugin }) => plugin)).toEqual([
    "./rakit-model-a/plugin.ts",
    "./rakit-model-a/plugin.ts",
  ])
})

it("takes id and price from the package's settings", async () => {
  writePackage("rakit-model-b", [offer("b")])
  const { container } = await assembled(
    "  ./rakit-model-b/plugin.ts: { id: svc-lyt, price: { input: 1500, output: 6000 } }\n",
  )
  const entry = resolve(container, Tokens.catalogue).entry("svc-lyt")
  expect(entry?.price).toMatchObject({ output: 6_000_000_000_000n })
})

const whyNot = (plugins: string, models?: string) =>
  assembled(plugins, models).then(
    () => "it worked",
    (error: Error) => error.message,
  )

it("refuses one id from two packages, or from a package and the config file, by both names", async () => {
  writePackage("rakit-model-c", [offer("same")])
  writePackage("rakit-model-d", [offer("same")])
  expect(
    await whyNot("  ./rakit-model-c/plugin.ts: {}\n  ./rakit-model-d/plugin.ts: {}\n"),
  ).toMatch(
    /rakit-model-d\/plugin\.ts: the model 'same' comes from the plugin '.*rakit-model-c.*' and from the plugin '.*rakit-model-d.*'/,
  )
  expect(
    await whyNot("  ./rakit-model-c/plugin.ts: {}\n", `[${JSON.stringify(offer("same"))}]`),
  ).toMatch(
    /rakit-model-c\/plugin\.ts: the model 'same' comes from the config file and from the plugin '.*rakit-model-c/,
  )
  expect(
    await whyNot("  ./rakit-model-c/plugin.ts: {}\n  ./rakit-model-d/plugin.ts: { id: other }\n"),
  ).toBe("it worked")
})

it.each([
  [{ limits: { contextTokens: 0 } }, /its model 'x', limits\.contextTokens: expected a value/],
  [{ windwo: 1 }, /its model 'x', windwo: unknown key 'windwo'/],
  [{ task: "sing" }, /its model 'x', task: expected "chat"/],
  [{ id: undefined }, /its model number 1, id: 'id' is missing/],
  [
    { price: { input: 0.123456789 } },
    /its model 'x', price\.input: must have at most 6 decimals.*\n.*in the plugin/,
  ],
  [{ price: { image: 1e-7 } }, /its model 'x', price\.image: must have at most 6 decimals/],
  [{ sources: [{ url: "ftp://x" }] }, /its model 'x', sources\[0\]\.url: this is no source/],
  [{ backend: "nope" }, /its model 'x', backend: no plugin here provides the backend 'nope'/],
  [
    { options: { stepMs: "slow" } },
    /its model 'x', options: the backend 'fake' refuses these options/,
  ],
  [{ limits: { contextTokens: 64 } }, /its model 'x', limits: the chat model 'x' needs maxOutput/],
])("refuses the entry %j of a package, by package and field", async (more, message) => {
  const name = `rakit-model-${Object.keys(more)}-${String(message).length}`
  writePackage(name, [offer("x", more)])
  const said = await whyNot(`  ./${name}/plugin.ts: {}\n`)
  expect(said).toMatch(new RegExp(`rakit\\.yaml:\\d+:\\d+ .*${name}.*: its model `))
  expect(said).toMatch(message)
})

it.each([
  [
    "{ price: { inptu: 5 } }",
    /plugins\S*rakit-model-s\/plugin\.ts\S*\.price\.inptu: unknown key 'inptu'/,
  ],
  ['{ id: "a b" }', /plugins\S*rakit-model-s\/plugin\.ts\S*\.id: must be 1 to/],
  [
    "{ price: { output: 0.1234567 } }",
    /plugins\S*rakit-model-s\/plugin\.ts\S*\.price\.output: must have at most 6 decimals/,
  ],
  ["{ price: { input: -1 } }", /plugins\S*rakit-model-s\/plugin\.ts\S*\.price\.input: expected/],
])("refuses the settings %s of a package at their line, once", async (settings, message) => {
  writePackage("rakit-model-s", [offer("s"), offer("s-small")])
  const said = await whyNot(`  ./rakit-model-s/plugin.ts: ${settings}\n`)
  expect(said).toMatch(message)
  expect(said).not.toMatch(/in the plugin|its model/)
  expect(said.match(/Fix/g)).toHaveLength(1)
})

it("refuses a plugin that brings models and does not say so, and a value that is no entry", async () => {
  writePackage("rakit-model-y", [offer("y")], "[]")
  expect(await whyNot("  ./rakit-model-y/plugin.ts: {}\n")).toMatch(
    /models or adapters, which its `provides` does not say/,
  )
  writePackage("rakit-model-z", ["text"])
  expect(await whyNot("  ./rakit-model-z/plugin.ts: {}\n")).toMatch(/its model number 1/)
})

it.each([Tokens.models, Tokens.adapters] as readonly Token<unknown>[])(
  "refuses a $name that a plugin brings in `start`, by the plugin's name",
  async (token) => {
    writePackage("rakit-model-late", [])
    const deployment = await assembled("  ./rakit-model-late/plugin.ts: {}\n")
    const late = deployment.order.find(({ plugin }) => plugin.name === "rakit-model-late")!
    const instance = {
      start: () => Effect.sync(() => provide(deployment.container, token, offer("late"))),
    }
    const starting = startDeployment({ ...deployment, order: [{ ...late, instance }] })
    expect(await Effect.runPromise(Effect.flip(Effect.scoped(starting)))).toMatchObject({
      plugin: "rakit-model-late",
      message: expect.stringMatching(/brings models or adapters in `start`.*in `register`/),
    })
  },
)

const lora = (id: string, model: string, more: object = {}) => ({
  id,
  model,
  sources: [{ url: `file:./${id}/` }],
  ...more,
})

it("attaches a package's adapter to a model of the config file, and to one of another package", async () => {
  writePackage("rakit-lora-a", [], "[Tokens.adapters]", [lora("legal", "own"), lora("x", "base")])
  writePackage("rakit-model-base", [offer("base")])
  const { container, models } = await assembled(
    "  ./rakit-lora-a/plugin.ts: {}\n  ./rakit-model-base/plugin.ts: {}\n",
    `[${JSON.stringify(offer("own", { adapters: [lora("own", "own")].map(({ model: _, ...rest }) => rest) }))}]`,
  )
  const catalogue = resolve(container, Tokens.catalogue)
  expect(catalogue.entry("own:legal")?.adapters).toEqual([
    { id: "own", sources: [{ url: `file:${join(folder, "own")}/` }] },
    { id: "legal", sources: [{ url: `file:${join(folder, "rakit-lora-a/legal")}/` }] },
  ])
  expect(catalogue.entry("base:x")?.id).toBe("base")
  const origins = ["own", "own:own", "own:legal", "base", "base:x"].map((name) =>
    originOf(models, name),
  )
  expect(origins).toEqual([
    "config",
    "config",
    "./rakit-lora-a/plugin.ts",
    "./rakit-model-base/plugin.ts",
    "./rakit-lora-a/plugin.ts",
  ])
})

it("refuses an adapter without its model, one that is there twice, and wrong fields, by name", async () => {
  const own = `[${JSON.stringify(offer("own"))}]`
  const only = (name: string, ...adapters: readonly object[]) => {
    writePackage(name, [], "[Tokens.adapters]", adapters)
    return `  ./${name}/plugin.ts: {}\n`
  }
  const legal = only("rakit-lora-b", lora("legal", "own"))
  expect(await whyNot(legal)).toMatch(
    /rakit-lora-b.*: its adapter 'legal' is for the model 'own', which this deployment does not have/,
  )
  expect(await whyNot(legal + only("rakit-lora-c", lora("legal", "own")), own)).toMatch(
    /rakit-lora-c.*: the adapter 'own:legal' comes from the plugin '.*lora-b.*' and from the plugin '.*lora-c/,
  )
  expect(await whyNot(only("rakit-lora-d", lora("a b", "own", { strength: 1 })), own)).toMatch(
    /its adapter 'a b', strength: unknown key[\s\S]*its adapter 'a b', id: must be 1 to 64/,
  )
  const odd = only("rakit-lora-e", lora("odd", "own", { sources: [{ url: "what:ever" }] }))
  expect(await whyNot(odd, own)).toMatch(
    /rakit-lora-e.*: its adapter 'own:odd', sources\[0\]\.url: this is no source/,
  )
  const many = Array.from({ length: 64 }, (_, at) => lora(`a${at}`, "own"))
  const whole = only("rakit-lora-g", ...many)
  expect((await assembled(whole, own)).models[0]?.model.adapters).toHaveLength(64)
  expect(await whyNot(whole + only("rakit-lora-h", lora("last", "own")), own)).toMatch(
    /rakit-lora-h.*: with its adapter 'last' the model 'own' has more than 64 adapters/,
  )
})

it("refuses an adapter for a model that takes none, and one with a model's name, by who brings it", async () => {
  writePackage("rakit-model-rank", [offer("rank", { task: "rerank" }), offer("own")])
  writePackage("rakit-model-colon", [offer("own:legal")])
  writePackage("rakit-lora-f", [], "[Tokens.adapters]", [lora("f", "rank"), lora("legal", "own")])
  const said = await whyNot(
    "  ./rakit-model-rank/plugin.ts: {}\n  ./rakit-model-colon/plugin.ts: {}\n  ./rakit-lora-f/plugin.ts: {}\n",
  )
  expect(said).toMatch(
    /rakit-lora-f\/plugin\.ts: its adapter 'rank:f': the model 'rank' has the task 'rerank'.*\n.*remove the plugin, which brings the adapter 'f'/,
  )
  expect(said).not.toMatch(/rakit-model-rank\/plugin\.ts: .*takes? /)
  expect(said).toMatch(
    /'own:legal' is given to an adapter by the plugin '.*lora-f.*' and to a model by the plugin '.*model-colon/,
  )
})

it("refuses adapters of models for other tasks, and names that are given twice", async () => {
  const legal = { id: "legal", sources: [{ url: "file:legal/" }] }
  const refused = (...models: readonly object[]) => assembled("", JSON.stringify(models))
  for (const task of ["rerank", "transcribe"])
    await expect(refused(offer("own", { task, adapters: [legal] }))).rejects.toThrow(
      `adapters: the model 'own' has the task '${task}', and only chat, embed and image models take adapters`,
    )
  await expect(refused(offer("own", { task: "image", adapters: [legal, legal] }))).rejects.toThrow(
    /adapters\[1\]\.id: the name 'own:legal' is given twice/,
  )
  await expect(refused(offer("own", { task: "embed", adapters: [legal, legal] }))).rejects.toThrow(
    /adapters\[1\]\.id: the name 'own:legal' is given twice/,
  )
  await expect(refused(offer("own", { task: "embed", adapters: [legal] }))).rejects.toThrow(
    /adapters\[0\]: the adapter of an embedding model is the vision tower .* and 'own' takes text\n/,
  )
  await expect(refused(offer("own", { adapters: [legal, legal] }))).rejects.toThrow(
    /adapters\[1\]\.id: the name 'own:legal' is given twice/,
  )
  await expect(
    refused(offer("own", { task: "image", adapters: [{ ...legal, id: "none" }] })),
  ).rejects.toThrow(/adapters\[0\]\.id: 'none' asks for no adapter/)
  await expect(refused(offer("own", { adapters: [legal] }), offer("own:legal"))).rejects.toThrow(
    /'own:legal'/,
  )
})
