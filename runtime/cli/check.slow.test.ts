import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { runCli } from "../../testing/platform.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-check-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it("has a line for each model that serves less than config promises", async () => {
  const model = (id: string, options = "{}") =>
    `{ id: ${id}, task: chat, backend: fake, limits: { contextTokens: 81920, maxOutputTokens: 4096 }, options: ${options} }`
  const fake = join(import.meta.dirname, "../../testing/fakes/backend.ts")
  const file = join(folder, "less.yaml")
  const models = [model("small", "{ window: 8192 }"), model("able")]
  writeFileSync(file, `plugins: { ${fake}: {} }\nmodels: [${models.join(", ")}]\n`)
  const { code, stdout } = await runCli(["check", file])
  expect(code).toBe(0)
  expect(stdout.split("\n").filter((line) => line.startsWith("The model "))).toEqual([
    "The model 'small' serves a window of 8,192 tokens instead of 81,920.",
  ])
})
