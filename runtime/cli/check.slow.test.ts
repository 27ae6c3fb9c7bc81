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

it("says what serves the models of a device, and why the CPU does", async () => {
  const file = join(folder, "device.yaml")
  const entry =
    '{ id: vectors, task: embed, backend: webgpu, limits: { contextTokens: 77 }, sources: [{ url: "file:///nowhere" }] }'
  writeFileSync(
    file,
    `plugins: { backend-onnx: {}, backend-webgpu: { driver: /nowhere.json } }\nmodels: [${entry}]\n`,
  )
  const { code, stdout } = await runCli(["check", file])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^vectors +embed +webgpu, now cpu /m)
  expect(stdout).toMatch(/^Models of the backend 'webgpu' run on the CPU: .*\binstall\b.*\.$/m)
})

it("names the precision of a model's weights, as the list of models does, and refuses others", async () => {
  const entry = (precision: string) =>
    `{ id: drawing, task: image, backend: onnx, limits: { contextTokens: 77 }, options: { precision: ${precision} }, sources: [{ url: "file:///nowhere" }] }`
  const fileOf = (precision: string) => {
    const file = join(folder, `${precision}.yaml`)
    writeFileSync(file, `plugins: { backend-onnx: {} }\nmodels: [${entry(precision)}]\n`)
    return file
  }
  const checked = await runCli(["check", fileOf("fp16")])
  expect(checked).toMatchObject({ code: 0 })
  expect(checked.stdout).toMatch(/^model +task +backend +precision /m)
  expect(checked.stdout).toMatch(/^drawing +image +onnx +fp16 /m)
  const listed = await runCli(["models", "list", "-c", fileOf("fp16")])
  expect(listed.stdout).toMatch(/^drawing +image +onnx +fp16 +not pulled/m)
  const refused = await runCli(["check", fileOf("fp8")])
  expect(refused.code).not.toBe(0)
  expect(refused.stderr).toMatch(/options\.precision.*"fp16"/s)
})

it("names models and adapters whose files of this machine are not there, and what is wrong", async () => {
  const file = join(folder, "absent.yaml")
  const fake = join(import.meta.dirname, "../../testing/fakes/backend.ts")
  const hub = "hf:rakit/none@main/x.gguf"
  writeFileSync(join(folder, "other.gguf"), "x")
  const adapters = [
    `{ id: legal, sources: [{ url: ./legal/ }, { url: ./lawyers/ }] }`,
    `{ id: here, sources: [{ url: ./other.gguf }] }`,
    `{ id: other, sources: [{ url: ./other.gguf, sha256: "${"0".repeat(64)}" }] }`,
    `{ id: pulled, sources: [{ url: ./legal/ }, { url: "${hub}" }] }`,
  ]
  const limits = "limits: { contextTokens: 9, maxOutputTokens: 9 }"
  const model = `{ id: m, task: chat, backend: fake, ${limits}, sources: [{ url: ./m.gguf }], adapters: [${adapters.join(", ")}] }`
  writeFileSync(file, `plugins: { ${fake}: {} }\nmodels: [${model}]\n`)
  const { code, stdout } = await runCli(["check", file, "--json"])
  expect(code).toBe(0)
  const at = (name: string) => join(folder, name)
  expect(JSON.parse(stdout).warnings).toEqual([
    `The files of 'm' can't be used: file:${at("m.gguf")}: ${at("m.gguf")} does not exist.`,
    `The files of 'm:legal' can't be used: file:${at("legal")}/: ${at("legal")} does not exist; file:${at("lawyers")}/: ${at("lawyers")} does not exist.`,
    expect.stringMatching(
      /^The files of 'm:other' can't be used: .* has sha256 .*, not the pinned 0/,
    ),
  ])
})

it("says why a model whose files are here can't be opened", async () => {
  const file = join(folder, "damaged.yaml")
  writeFileSync(join(folder, "damaged.gguf"), "GGUF")
  const limits = "limits: { contextTokens: 9, maxOutputTokens: 9 }"
  const model = `{ id: m, task: chat, backend: onnx, ${limits}, sources: [{ url: ./damaged.gguf }] }`
  writeFileSync(file, `plugins: { backend-onnx: {} }\nmodels: [${model}]\n`)
  const { code, stdout } = await runCli(["check", file, "--json"])
  expect(code).toBe(0)
  expect(JSON.parse(stdout).warnings).toEqual([
    expect.stringMatching(/^The model 'm' can't be opened: .*damaged\.gguf.*/),
  ])
})
