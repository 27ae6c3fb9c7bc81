import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, expect, it } from "vitest"
import type { ModelEntry } from "../../../core/services/model-entry.ts"
import { fakeLog } from "../../../testing/index.ts"
import { assemble } from "../../boot/assemble.ts"
import { loadConfig } from "../../config/load.ts"
import { models } from "./deployment.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-doctor-models-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const file = join(folder, "rakit.yaml")
const backend = join(import.meta.dirname, "../../../testing/fakes/backend.ts")

/** The findings for a chat model with adapters of these sources. */
const examine = (
  source: string,
  adapters: Readonly<Record<string, string | ModelEntry["sources"]>>,
) => {
  const entries = Object.entries(adapters).map(([id, files]) => ({
    id,
    sources: typeof files === "string" ? [{ url: files }] : files,
  }))
  const limits = { contextTokens: 9, maxOutputTokens: 9 }
  const sources = [{ url: source }]
  const model = { id: "m", task: "chat", backend: "fake", limits, sources, adapters: entries }
  const config = { dataDir: join(folder, "data"), plugins: { [backend]: {} }, models: [model] }
  writeFileSync(file, JSON.stringify(config))
  return Effect.runPromise(
    Effect.scoped(Effect.flatMap(assemble(loadConfig(file, {}), "command", fakeLog()), models)),
  )
}

const here = (name: string): string => {
  mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, name, "weights"), "12345")
  return `file:${join(folder, name)}/`
}
const hub = `hf:rakit/none@${"0".repeat(40)}/lora/`

const nothingAt = (name: string, path: string) => ({
  name: `model ${name}`,
  state: "problem",
  detail: `file:${path}/: ${path} does not exist`,
  fix: "put the model's file there, or name another source.",
})
const notPulled = (name: string) => ({
  name: `model ${name}`,
  state: "warning",
  detail: "its files are not here",
  fix: `rakit models pull m -c ${file}; the first start does it, too.`,
})

it("a model with all its files is well", async () => {
  expect(await examine(here("llama"), { a: here("a") })).toEqual({
    findings: [{ name: "model m", state: "ok", detail: "1 MB" }],
    bytes: 10,
  })
})

it("names the adapter whose files are missing, and not the model that is here", async () => {
  const found = await examine(here("llama"), { b: here("b"), a: "file:/nope/x/" })
  expect(found).toEqual({ findings: [nothingAt("m:a", "/nope/x")], bytes: 10 })
})

it("says what is wrong with a file that is there, but not what its source says", async () => {
  const sources = [{ url: `${here("llama")}weights`, sha256: "0".repeat(64) }]
  const { findings } = await examine(here("llama"), { a: sources })
  expect(findings).toEqual([
    {
      ...nothingAt("m:a", ""),
      detail: expect.stringMatching(
        /llama\/weights has sha256 [0-9a-f]{64}, not the pinned 0{64}$/,
      ),
    },
  ])
})

it("warns of an adapter that a pull brings, and names the model as what is pulled", async () => {
  const found = await examine(here("llama"), { a: hub })
  expect(found).toEqual({ findings: [notPulled("m:a")], bytes: 5 })
})

it("names first the files that no pull brings", async () => {
  expect((await examine(hub, { a: hub, b: "file:/nope/b/", c: "file:/nope/c/" })).findings).toEqual(
    [nothingAt("m:b", "/nope/b")],
  )
  expect((await examine("file:/nope/m/", { a: "file:/nope/a/" })).findings).toEqual([
    nothingAt("m", "/nope/m"),
  ])
})
