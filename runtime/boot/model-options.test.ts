import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, expect, it } from "vitest"
import { fakeLog } from "../../testing/index.ts"
import { loadConfig } from "../config/load.ts"
import { assemble } from "./assemble.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-model-options-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = join(folder, "rakit.yaml")
const assembleWith = (options: string, task = "chat", backend = "onnx") => {
  writeFileSync(
    file,
    `dataDir: ${folder}
plugins: { backend-onnx: {}, backend-remote: {}, billing-free: {} }
models:
  - id: m
    task: ${task}
    backend: ${backend}
    limits: { contextTokens: 64, maxOutputTokens: 8 }
    options:
${options.replaceAll(/^/gm, "      ")}
`,
  )
  const config = loadConfig(file, { SLOTS: "3", KEY: "12345" })
  return Effect.runPromise(Effect.scoped(assemble(config, "command", fakeLog())))
}

it.each([
  ["precison: int8", "chat", "onnx", /yaml:9:17 models\[0\]\.options\.precison: unknown key/],
  ["precison: int8", "chat", "onnx", /Fix: write 'precision', or remove it\. Known keys: /],
  ["precision: int8\nqueueWaitMs: -1", "chat", "onnx", /yaml:10:20 models\[0\]\.options\.queueW/],
  ["slots: 2", "chat", "onnx", /unknown key 'slots'/],
  ["slots: 99", "transcribe", "onnx", /options\.slots: expected a value between 1 and 64/],
  [
    "upstreams: [{ url: http://a, modle: x }]",
    "chat",
    "remote",
    /yaml:9:43 .*upstreams\[0\]\.modle/,
  ],
])(
  "refuses the options %s of a %s model of %s, where they stand",
  async (text, task, backend, said) => {
    await expect(assembleWith(text, task, backend)).rejects.toThrow(said)
  },
)

it("still asks the backend about what a schema can't say", async () => {
  await expect(assembleWith("retries: 1", "chat", "remote")).rejects.toThrow(
    /refuses these options: options\.upstreams: must name at least one server/,
  )
})

it("takes numbers and booleans from the environment, and leaves texts as they are", async () => {
  const { models } = await assembleWith("slots: ${SLOTS}", "transcribe")
  expect(models[0]!.model.options).toEqual({ slots: 3 })
  const remote = "upstreams: [{ url: http://a, model: x, key: '${KEY}' }]"
  const other = await assembleWith(remote, "chat", "remote")
  expect(other.models[0]!.model.options).toEqual({
    upstreams: [{ url: "http://a", model: "x", key: "12345" }],
  })
})
