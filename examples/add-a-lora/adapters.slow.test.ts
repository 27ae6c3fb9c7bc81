import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { runCli } from "rakit/testing/platform"
import { expect, it } from "vitest"
import { servedExample } from "../add-a-model/served-example.ts"
import { files, stripes } from "./make-adapter.ts"

const here = import.meta.dirname
const config = join(here, "rakit.yaml")
const { client, folder } = servedExample(config)

/** The pixels of a PNG, without its parameters. */
const pixelsIn = (png: string): string => {
  const bytes = Buffer.from(png, "base64")
  return bytes.subarray(bytes.indexOf("IDAT")).toString("base64")
}

const ask = async (model: string, more: object = {}) => {
  const answer = await client().chat.completions.create({
    model,
    messages: [{ role: "user", content: "Hello" }],
    temperature: 0,
    max_tokens: 16,
    ...more,
  })
  return { model: answer.model, text: answer.choices[0]?.message.content }
}

it("answers with the LoRA and without, side by side", async () => {
  expect((await client().models.list()).data.map(({ id }) => id)).toEqual([
    "tiny",
    "tiny:accent",
    "tiny:packaged",
    "tiny-painter",
  ])
  const [plain, accent] = await Promise.all([ask("tiny"), ask("tiny:accent")])
  expect([plain.model, accent.model]).toEqual(["tiny", "tiny:accent"])
  expect(accent.text).not.toBe(plain.text)
  expect(await ask("tiny", { adapter: "accent" })).toEqual(accent)
  expect(await ask("tiny:packaged")).toEqual({ model: "tiny:packaged", text: accent.text })
  expect((await ask("tiny", { adapter: { id: "accent", strength: 0 } })).text).toBe(plain.text)
})

it("draws with the LoRA and without, each the same bytes every time", async () => {
  const draw = async (more: object = {}) => {
    const { data } = await client().images.generate({
      ...{ model: "tiny-painter", prompt: "a red cat", size: "64x64" as "auto" },
      ...{ seed: 7, num_steps: 2, ...more },
    })
    return data![0]!.b64_json!
  }
  const [plain, stripes] = await Promise.all([draw(), draw({ lora: "stripes" })])
  expect(pixelsIn(stripes)).not.toBe(pixelsIn(plain))
  expect(await draw({ lora: "none" })).toBe(plain)
  expect(await draw({ lora: "stripes" })).toBe(stripes)
  expect(pixelsIn(await draw({ lora: "stripes", lora_strength: 0 }))).toBe(pixelsIn(plain))
  await expect(draw({ lora: "dark" })).rejects.toThrow("must be one of 'none', 'stripes'")
})

it("is shown by `rakit check`, with what brings it", async () => {
  const { code, stdout } = await runCli(["check", config, "--json"], { RAKIT_DATA: folder })
  expect(code).toBe(0)
  const sources = `file:${join(here, "adapter/")} (no digest)`
  expect(JSON.parse(stdout).files).toEqual(
    expect.arrayContaining([
      { model: "tiny:accent", from: "config", sources },
      { model: "tiny:packaged", from: "./plugin.ts", sources },
    ]),
  )
})

it("has the weights that make-adapter.ts writes", () => {
  expect(readFileSync(join(here, "stripes.safetensors")).equals(stripes())).toBe(true)
  for (const [name, bytes] of Object.entries(files())) {
    const kept = readFileSync(join(here, "adapter", name))
    if (name.endsWith(".json")) expect(JSON.parse(`${kept}`)).toEqual(JSON.parse(`${bytes}`))
    else expect(kept.equals(bytes)).toBe(true)
  }
})

it("has the image model of a test of the engine", () => {
  const fixture = join(here, "../../plugins/backend-onnx/fixtures/diffusion/sd")
  const painter = join(here, "painter")
  const entries = readdirSync(painter, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  expect(files).toHaveLength(12)
  for (const { parentPath, name } of files) {
    const path = relative(painter, join(parentPath, name))
    expect(readFileSync(join(painter, path)).equals(readFileSync(join(fixture, path)))).toBe(true)
  }
})
