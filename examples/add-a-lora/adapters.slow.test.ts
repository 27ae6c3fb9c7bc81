import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { type Platform, runCli, startPlatform } from "rakit/testing/platform"
import { afterAll, beforeAll, expect, it } from "vitest"
import { files } from "./make-adapter.ts"

const here = import.meta.dirname
const config = join(here, "rakit.yaml")
const folder = mkdtempSync(join(tmpdir(), "rakit-add-a-lora-"))

let platform: Platform
let client: OpenAI
beforeAll(async () => {
  const made = await runCli(["keys", "hash", "--name", "app", "--json"])
  const { key, hash } = JSON.parse(made.stdout) as { readonly key: string; readonly hash: string }
  platform = await startPlatform({
    ...{ config, database: "embedded", dataDir: folder },
    env: { HOST: "127.0.0.1", RAKIT_KEY_HASH: hash },
  })
  client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: key, maxRetries: 0 })
})
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true, force: true })
})

const ask = async (model: string, more: object = {}) => {
  const answer = await client.chat.completions.create({
    model,
    messages: [{ role: "user", content: "Hello" }],
    temperature: 0,
    max_tokens: 16,
    ...more,
  })
  return { model: answer.model, text: answer.choices[0]?.message.content }
}

it("answers with the LoRA and without, side by side", async () => {
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["tiny", "tiny:accent"])
  const [plain, accent] = await Promise.all([ask("tiny"), ask("tiny:accent")])
  expect([plain.model, accent.model]).toEqual(["tiny", "tiny:accent"])
  expect(accent.text).not.toBe(plain.text)
  expect(await ask("tiny", { adapter: "accent" })).toEqual(accent)
  expect((await ask("tiny", { adapter: { id: "accent", strength: 0 } })).text).toBe(plain.text)
})

it("is shown by `rakit check`", async () => {
  const { code, stdout } = await runCli(["check", config], { RAKIT_DATA: folder })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^tiny:accent +chat +onnx +512 .*add-a-lora\/adapter\//m)
})

it("has the weights that make-adapter.ts writes", () => {
  for (const [name, bytes] of Object.entries(files())) {
    const kept = readFileSync(join(here, "adapter", name))
    if (name.endsWith(".json")) expect(JSON.parse(`${kept}`)).toEqual(JSON.parse(`${bytes}`))
    else expect(kept.equals(bytes)).toBe(true)
  }
})
