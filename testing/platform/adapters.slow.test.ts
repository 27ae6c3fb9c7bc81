import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import OpenAI from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { stringify } from "yaml"
import { type Platform, runCli, startPlatform } from "../platform.ts"

/** A checkpoint with random weights and two LoRAs of it: the real engine. */
const fixtures = fileURLToPath(new URL("../../plugins/backend-onnx/fixtures", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "rakit-adapters-"))
const file = join(folder, "rakit.yaml")

const writeConfig = async (): Promise<string> => {
  const key = async (name: string) =>
    JSON.parse((await runCli(["keys", "hash", "--name", name, "--json"])).stdout) as {
      readonly key: string
      readonly hash: string
    }
  const [all, some, none] = [await key("all"), await key("some"), await key("none")]
  const limits = { contextTokens: 512, maxOutputTokens: 64 }
  const sources = [{ url: `file:${fixtures}/llama/` }]
  const adapters = ["legal", "poems"].map((id) => ({
    id,
    sources: [{ url: `file:${fixtures}/llama-adapters/${id}/` }],
  }))
  const model = { task: "chat", backend: "onnx", limits, options: { precision: "fp32" } }
  writeFileSync(
    file,
    stringify({
      dataDir: join(folder, "data"),
      server: { host: "127.0.0.1", port: 0 },
      plugins: {
        "billing-free": {},
        "identity-static": {
          keys: [
            { name: "all", hash: all.hash },
            { name: "some", hash: some.hash, models: ["svc-lyt"] },
            { name: "none", hash: none.hash, models: ["svc-rerank"] },
          ],
        },
        "backend-onnx": { threads: 1 },
        "endpoint-chat": {},
        "endpoint-models": {},
        "endpoint-rerank": {},
      },
      models: [
        { ...model, id: "svc-lyt", sources, adapters, price: { input: 1500, output: 6000 } },
        { ...model, id: "svc-rerank", task: "rerank", sources },
      ],
    }),
  )
  keys = { all: all.key, some: some.key, none: none.key }
  return file
}

let keys: Readonly<Record<"all" | "some" | "none", string>>
let platform: Platform
const clientOf = (key: keyof typeof keys) =>
  new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: keys[key], maxRetries: 0 })
beforeAll(async () => {
  platform = await startPlatform({ config: await writeConfig() })
}, 120_000)
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true, force: true })
})

const prompts = ["Is it yes?", "The question is whether the answer is no. Two engines.", "42"]
const ask = async (model: string, content: string, more: object = {}) => {
  const reply = await clientOf("all").chat.completions.create({
    model,
    messages: [{ role: "user", content }],
    temperature: 0,
    max_tokens: 24,
    ...more,
  })
  expect(reply.usage?.completion_tokens).toBeGreaterThan(0)
  return { model: reply.model, text: reply.choices[0]?.message.content }
}

it("two adapters and none at once give each its own answer, equal to alone", async () => {
  const models = ["svc-lyt", "svc-lyt:legal", "svc-lyt:poems"]
  const calls = prompts.flatMap((prompt) => models.map((model) => [model, prompt] as const))
  const alone: Awaited<ReturnType<typeof ask>>[] = []
  for (const call of calls) alone.push(await ask(...call))
  expect(alone.map(({ model }) => model)).toEqual(calls.map(([model]) => model))
  for (const at of [0, 3, 6])
    expect(new Set(alone.slice(at, at + 3).map(({ text }) => text)).size).toBe(3)
  for (let round = 0; round < 3; round++)
    expect(await Promise.all(calls.map((call) => ask(...call)))).toEqual(alone)
})

it("the field names an adapter as the model does, and one that is unknown is refused", async () => {
  const [prompt] = prompts as [string]
  expect(await ask("svc-lyt", prompt, { adapter: "legal" })).toEqual(
    await ask("svc-lyt:legal", prompt),
  )
  expect((await ask("svc-lyt", prompt, { adapter: { id: "legal", strength: 0 } })).text).toBe(
    (await ask("svc-lyt", prompt)).text,
  )
  const param = { adapter: "poems" }
  for (const [model, more, error] of [
    ["svc-lyt", { adapter: "other" }, { status: 404, code: "model_not_found", param: "adapter" }],
    ["svc-lyt:other", {}, { status: 404, code: "model_not_found", param: "model" }],
    ["other:legal", {}, { status: 400, code: "model_not_found", param: "model" }],
    ["svc-lyt:legal", param, { status: 400, code: "invalid_request_error", param: "adapter" }],
  ] as const)
    await expect(ask(model, prompt, more)).rejects.toMatchObject(error)
  const reranked = await fetch(`${platform.url}/v1/rerank`, {
    method: "POST",
    headers: { authorization: `Bearer ${keys.all}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "svc-lyt:legal", query: "a", documents: ["b"] }),
  })
  expect([reranked.status, await reranked.json()]).toMatchObject([
    400,
    { error: { code: "model_not_found" } },
  ])
})

it("adapters are listed behind their model, and a key that reaches it reaches them", async () => {
  const list = await clientOf("all").models.list()
  expect(list.data.map(({ id }) => id)).toEqual([
    "svc-lyt",
    "svc-lyt:legal",
    "svc-lyt:poems",
    "svc-rerank",
  ])
  expect(list.data[1]).toMatchObject({ parent: "svc-lyt", pricing: { input_idr: 1500 } })
  const call = (key: keyof typeof keys) =>
    clientOf(key).chat.completions.create({
      model: "svc-lyt:legal",
      messages: [{ role: "user", content: "42" }],
      max_tokens: 1,
    })
  expect((await call("some")).model).toBe("svc-lyt:legal")
  await expect(call("none")).rejects.toMatchObject({ code: "model_not_found" })
  const metrics = await (await fetch(`${platform.url}/metrics`)).text()
  expect(metrics).toMatch(/rakit_adapter_bytes\{model_name="svc-lyt"\} [1-9]/)
  expect(metrics).toMatch(/rakit_generation_tokens_total\{model_name="svc-lyt",/)
})

it("`rakit check` shows them", async () => {
  const { stdout } = await runCli(["check", file, "--json"])
  expect(JSON.parse(stdout).files).toContainEqual(
    expect.objectContaining({
      model: "svc-lyt:legal",
      sources: expect.stringMatching(/llama-adapters\/legal\//),
    }),
  )
})
