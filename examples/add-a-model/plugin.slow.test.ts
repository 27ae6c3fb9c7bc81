import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { type Platform, runCli, startPlatform } from "rakit/testing/platform"
import { afterAll, beforeAll, expect, it } from "vitest"
import { files } from "./make-weights.ts"

const here = import.meta.dirname
const config = join(here, "rakit.yaml")
const folder = mkdtempSync(join(tmpdir(), "rakit-add-a-model-"))

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

it("chats with the package's model", async () => {
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["tiny"])
  const answer = await client.chat.completions.create({
    model: "tiny",
    messages: [{ role: "user", content: "Hello" }],
    max_tokens: 16,
    seed: 1,
  })
  expect(answer.usage?.completion_tokens).toBeGreaterThan(0)
  expect(answer.choices[0]?.message.content).not.toBe("")
})

it("is shown by `rakit check` and `rakit models list`, with the plugin that brings it", async () => {
  const env = { RAKIT_DATA: folder }
  const { code, stdout } = await runCli(["check", config], env)
  expect(code).toBe(0)
  const row = /^tiny +chat +onnx +512 +256 \(256\) .* \.\/plugin\.ts +file:(\S+)$/m.exec(
    stdout.replaceAll(" (no digest)", ""),
  )
  expect(row?.[1]).toBe(join(here, "weights/"))
  const listed = await runCli(["models", "list", "-c", config], env)
  expect(listed.stdout).toMatch(/^tiny +chat +onnx +0\.1 MB +\.\/plugin\.ts +\S+weights$/m)
})

it("has the weights that make-weights.ts writes", () => {
  for (const [name, bytes] of Object.entries(files())) {
    const kept = readFileSync(join(here, "weights", name))
    if (name.endsWith(".json")) expect(JSON.parse(`${kept}`)).toEqual(JSON.parse(`${bytes}`))
    else expect(kept.equals(bytes)).toBe(true)
  }
})
