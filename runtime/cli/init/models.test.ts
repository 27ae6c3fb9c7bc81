import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { loadConfig } from "../../config/load.ts"
import { noDatabase } from "./choices.ts"
import { entriesOf } from "./models.ts"
import { readParts } from "./parts.ts"
import { configText, unsetIn } from "./text.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-init-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const config = join(folder, "rakit.yaml")

const write = (models: readonly string[]) => {
  for (const model of models) {
    mkdirSync(dirname(join(folder, model)), { recursive: true })
    writeFileSync(join(folder, model), "")
  }
  const parts = readParts()
  const paths = models.map((model) => join(folder, model))
  const choices = { serve: ["chat"], models: paths, database: noDatabase, storage: "" }
  const text = configText(parts, choices, entriesOf(parts, choices, config))
  writeFileSync(config, text)
  return text
}

it.each([
  ["123.gguf", "123"],
  ["true.gguf", "true"],
  ["1e3.gguf", "1e3"],
  ["null.gguf", "null"],
  ['x #y: "q".gguf', "x-y-q"],
  ["My Model.Q4_K_M.gguf", "my-model"],
  ["x-q4_0-00001-of-00002.gguf", "x"],
  ["a${NOPE}b ${OTHER:-x}.gguf", "a-nope-b-other-x"],
])("the file %s is an entry of a config that is taken, and means itself", (file, id) => {
  const text = write([file])
  const { deployment } = loadConfig(config, { NOPE: "a value of the environment" })
  expect(deployment.models).toMatchObject([
    { id, sources: [{ url: expect.stringContaining(file) }] },
  ])
  expect(unsetIn(text)).not.toContain("NOPE")
})

it("of a GGUF file in parts the first one is the source, whichever is named", () => {
  writeFileSync(join(folder, "y-00001-of-00002.gguf"), "")
  write(["y-00002-of-00002.gguf"])
  expect(loadConfig(config, {}).deployment.models).toMatchObject([
    { id: "y", sources: [{ url: expect.stringContaining("y-00001-of-00002.gguf") }] },
  ])
})

it("two files of one name are refused before anything is written", () => {
  expect(() => write(["one/m.gguf", "two/m.gguf"])).toThrow("the id 'm'")
})
