import { createHash } from "node:crypto"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, expect, it } from "vitest"
import { resolve, Tokens } from "../../core/tokens.ts"
import { startFileServer } from "../../testing/files-server.ts"
import { fakeLog } from "../../testing/index.ts"
import { loadConfig } from "../config/load.ts"
import type { ConfigError } from "../config/problems.ts"
import { assemble } from "./assemble.ts"
import { startDeployment } from "./start.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-assemble-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it("gives each of two deployments in one process plugins with a state of their own", async () => {
  const file = join(folder, "rakit.yaml")
  writeFileSync(file, `dataDir: ${folder}\nplugins: { storage-disk: {}, billing-free: {} }\n`)
  const config = loadConfig(file, {})
  const open = Effect.gen(function* () {
    const deployment = yield* assemble(config, "command", fakeLog())
    yield* startDeployment(deployment)
    return deployment
  })
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const [one, other] = [yield* open, yield* open]
        const [first, second] = [one, other].map((deployment) => deployment.order[0])
        expect(first?.plugin).toBe(second?.plugin)
        expect(first?.instance).not.toBe(second?.instance)
        const billings = [one, other].map(({ container }) => resolve(container, Tokens.billing))
        expect(billings[0]).not.toBe(billings[1])
      }),
    ),
  )
})

it.each(["{ maxInputs: 100 }", "none"])(
  "refuses %s as the settings of a plugin that has none, as any other unknown key",
  async (settings) => {
    const file = join(folder, "unknown.yaml")
    writeFileSync(
      file,
      `dataDir: ${folder}\nplugins: { billing-free: {}, endpoint-rerank: ${settings} }\n`,
    )
    const assembled = Effect.runPromise(
      Effect.scoped(assemble(loadConfig(file, {}), "command", fakeLog())),
    )
    await expect(assembled).rejects.toThrow(
      settings === "none"
        ? /plugins\.endpoint-rerank: expected object/
        : /endpoint-rerank\.maxInputs: unknown key 'maxInputs'[\s\S]*No settings are known here/,
    )
  },
)

it("keeps pulled models and the secret key below the data folder by default", async () => {
  const server = await startFileServer()
  const body = Buffer.from("weights")
  server.file("/m.bin", { body })
  const sha256 = createHash("sha256").update(body).digest("hex")
  const dataDir = join(folder, "data")
  const file = join(folder, "models.yaml")
  writeFileSync(file, `dataDir: ${dataDir}\nmodels: []\nplugins: {}\n`)
  const work = Effect.gen(function* () {
    const { modelFiles, container } = yield* assemble(loadConfig(file, {}), "command", fakeLog())
    resolve(container, Tokens.secrets).encrypt("secret")
    return yield* modelFiles.pull("m", [{ url: `${server.url}/m.bin`, sha256 }], () => {})
  })
  const path = await Effect.runPromise(Effect.scoped(work)).finally(() => server.close())
  expect(path.startsWith(join(dataDir, "models"))).toBe(true)
  expect(existsSync(join(dataDir, "secret.key"))).toBe(true)
})

it.each([
  ["tniy", "the key 'app' names the unknown model 'tniy'; models are tiny, other"],
  [
    "tiny:accent",
    "the key 'app' names 'tiny:accent', which is an adapter; keys go by the model, so name 'tiny'",
  ],
])("refuses a key for '%s', which is no model, before anything starts", async (model, message) => {
  const file = join(folder, "keys.yaml")
  const fake = join(import.meta.dirname, "../../testing/fakes/backend.ts")
  const limits = { contextTokens: 9, maxOutputTokens: 9 }
  const entry = (id: string, more: object = {}) => ({
    ...{ id, task: "chat", backend: "fake", limits },
    ...more,
  })
  const adapters = [{ id: "accent", sources: [{ url: "file:accent/" }] }]
  const problemsOf = (models: readonly string[]) => {
    const keys = [{ name: "app", hash: "", models }]
    const plugins = { "identity-static": { keys }, [fake]: {} }
    const entries = [entry("tiny", { adapters }), entry("other")]
    writeFileSync(file, JSON.stringify({ dataDir: folder, plugins, models: entries }, null, 1))
    const assembled = Effect.scoped(assemble(loadConfig(file, {}), "command", fakeLog()))
    return Effect.runPromise(
      Effect.match(assembled, {
        onSuccess: () => [],
        onFailure: (error) => (error as ConfigError).problems,
      }),
    )
  }
  expect(await problemsOf(["tiny", "other"])).toEqual([])
  expect(await problemsOf(["tiny", model])).toEqual([
    `${file}:4:22 plugins.identity-static: ${message}\n    Fix: correct its settings.`,
  ])
})
