import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { loadConfig } from "./load.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-include-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
mkdirSync(join(folder, "models"))

const write = (name: string, text: string): string => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

const model = (id: string, more = "") =>
  `models:\n  - id: ${id}\n    task: chat\n    backend: onnx\n    limits: { contextTokens: 1024, maxOutputTokens: 64 }\n${more}`

const load = (include: string, more = "", env = {}) =>
  loadConfig(write("rakit.yaml", `plugins: {}\n${more}include: ${include}\n`), env).deployment
    .models

const whyNot = (include: string, more = "", env = {}): string => {
  try {
    load(include, more, env)
    return "it worked"
  } catch (error) {
    return (error as Error).message
  }
}

it("adds the models of a file beside the config file, whose paths are its own", () => {
  write("models/a.yaml", model("a", "    sources: [{ url: 'file:a.gguf' }]\n"))
  const own = "models: [{ id: own, task: chat, backend: x, limits: { contextTokens: 1 } }]\n"
  const models = load("[models/a.yaml]", own)
  expect(models.map(({ id }) => id)).toEqual(["own", "a"])
  expect(models[1]?.sources[0]?.url).toBe(`file:${join(folder, "models/a.gguf")}`)
  expect(load("[./models/a.yaml]").map(({ id }) => id)).toEqual(["a"])
  expect(load("[]")).toEqual([])
})

it("finds the ready-made ones by name, and takes what is to be instead of theirs", () => {
  const [first, second] = load(
    "[models/qwen3-0.6b.yaml, { file: models/qwen3-4b.yaml, id: svc-lyt, price: { input: 1500 } }]",
  )
  expect(first?.id).toBe("qwen3-0.6b")
  expect(second).toMatchObject({ id: "svc-lyt", price: { input: 1500 }, backend: "onnx" })
  expect(whyNot("[./models/qwen3-0.6b.yaml]")).toMatch(/can't be read: there is no such file/)
})

it("knows which values of the merged models are of the environment", () => {
  const option = (name: string) => `    options: { n: "\${${name}:-3}" }\n`
  write("models/one.yaml", model("one", option("ONE")))
  write("models/two.yaml", model("two", option("TWO")))
  const own = "models: [{ id: own, task: chat, backend: x, limits: { contextTokens: 1 } }]\n"
  const file = write(
    "rakit.yaml",
    `plugins: {}\n${own}include: [models/one.yaml, models/two.yaml]\n`,
  )
  expect([...loadConfig(file, {}).fromEnvironment].map((path) => JSON.parse(path))).toEqual([
    ["models", 1, "options", "n"],
    ["models", 2, "options", "n"],
  ])
})

it("reads the environment, and hides it in refusals", () => {
  write("models/env.yaml", model("e", "    description: $" + "{NAME}\n    tier: $" + "{TIER:-x}\n"))
  expect(load("[models/env.yaml]", "", { NAME: "Mine" })[0]).toMatchObject({
    description: "Mine",
    tier: "x",
  })
  expect(whyNot("[models/env.yaml]")).toMatch(
    /models\/env\.yaml:6:18 models\[0\]\.description: the environment variable NAME is not set/,
  )
})

it("says in which file a problem is", () => {
  write("models/bad.yaml", model("b", "    prcie: {}\n"))
  expect(whyNot("[models/bad.yaml]")).toMatch(/models\/bad\.yaml:6:\d+ models\[0\]\.prcie: unknown/)
  write("models/more.yaml", `${model("c")}plugins: {}\n`)
  expect(whyNot("[models/more.yaml]")).toMatch(/models\/more\.yaml:6:\d+ plugins: unknown key/)
  write("models/one.yaml", model("one"))
  const own = `${model("own")}`
  expect(whyNot("[models/one.yaml, models/one.yaml]", own)).toMatch(
    /models\/one\.yaml:2:9 models\[0\]\.id: the model 'one' is listed twice/,
  )
  write("models/two.yaml", `${model("t1")}${model("t2").replace("models:\n", "")}`)
  expect(load("[models/two.yaml]")).toHaveLength(2)
  expect(whyNot("[{ file: models/two.yaml, id: x }]")).toMatch(/has 2 models, .* sets id for one/)
  expect(whyNot("[{ file: models/one.yaml, price: { input: -1 } }]")).toMatch(
    /rakit\.yaml:2:\d+ include\[0\]/,
  )
  expect(whyNot("[nowhere.yaml]")).toMatch(
    /nowhere\.yaml: can't be read: .*\n {4}Fix: correct 'nowhere\.yaml' under include/,
  )
})
