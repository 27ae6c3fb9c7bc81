import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import OpenAI from "openai"
import pg from "pg"
import sharp from "sharp"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { stringify } from "yaml"
import type { BadWay } from "../../plugins/backend-remote/testing/bad-way.ts"
import { badWays } from "../../plugins/backend-remote/testing/bad-ways.ts"
import { greyPng } from "../../plugins/backend-remote/testing/grey-png.ts"
import {
  begin,
  chunk,
  event,
  good,
  json,
  openScripted,
  type ScriptedUpstream,
  say,
  stream,
  usageOf,
} from "../../plugins/backend-remote/testing/scripted-upstream.ts"
import { type Platform, startPlatform } from "../platform.ts"
import { openTestDatabase, type TestDatabase } from "../postgres.ts"

/**
 * Remote models on a whole server: what the official client sees of each way in which an upstream
 * misbehaves, and what the ledger charges.
 */
const apiKey = `svc_live_${randomBytes(16).toString("hex")}`
const secret = "sk-upstream-secret"
const folder = mkdtempSync(join(tmpdir(), "rakit-remote-"))
let upstream: ScriptedUpstream
let other: ScriptedUpstream
let database: TestDatabase
let platform: Platform
let client: OpenAI
let sql: pg.Client

const entry = (id: string, options: object) => ({
  id,
  task: "chat",
  backend: "remote",
  limits: { contextTokens: 4096, maxOutputTokens: 512 },
  capabilities: ["chat", "tool_use", "structured_output"],
  price: { input: 1000, output: 2000 },
  options: { healthIntervalMs: 200, ejectAfter: 1000, ...options },
})

beforeAll(async () => {
  upstream = await openScripted()
  other = await openScripted()
  database = await openTestDatabase()
  const at = (url: string) => ({ url, model: "m", key: `\${UPSTREAM_KEY}` })
  const config = join(folder, "rakit.yaml")
  writeFileSync(
    config,
    stringify({
      dataDir: join(folder, "data"),
      server: { host: "127.0.0.1", port: 0 },
      plugins: {
        "database-postgres": { url: `\${DATABASE_URL}` },
        "signing-keys": {},
        "mail-smtp": {},
        "billing-ledger": {},
        accounts: { apiKey, defaultLimits: { rpm: 1e6, rpd: 1e6, concurrency: 100 } },
        "backend-remote": {},
        "endpoint-models": {},
        "endpoint-chat": {},
        "endpoint-images": {},
      },
      models: [
        entry("fast", { upstreams: [at(upstream.url)] }),
        entry("slow", {
          upstreams: [at(upstream.url)],
          firstByteTimeoutMs: 300,
          idleTimeoutMs: 300,
        }),
        entry("counted", {
          upstreams: [at(upstream.url)],
          tokenizer: resolve("examples/add-a-model/weights/tokenizer.json"),
        }),
        {
          ...entry("pictures", {
            upstreams: [{ ...at(upstream.url), kind: "openai" }],
            retries: 0,
          }),
          task: "image",
          capabilities: ["image_generation"],
          limits: { contextTokens: 2048 },
          price: { image: 150 },
        },
        entry("spare", { upstreams: [at(other.url)] }),
        entry("chain", { upstreams: [at(upstream.url)], retries: 0, fallback: ["spare"] }),
      ],
    }),
  )
  platform = await startPlatform({
    config,
    database: new URL(database.url),
    env: { UPSTREAM_KEY: secret },
  })
  client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
  sql = new pg.Client({ connectionString: database.url })
  await sql.connect()
}, 120_000)
afterAll(async () => {
  await sql?.end()
  await platform?.close()
  await Promise.all([upstream.close(), other.close()])
  await database?.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Row {
  readonly state: string
  readonly cost_micros: string
  readonly evidence: { readonly served_by?: Readonly<Record<string, unknown>> } | null
}
const lastCall = async (): Promise<Row> => {
  const { rows } = await sql.query<Row>(
    "SELECT state, cost_micros, evidence FROM ledger_call ORDER BY admitted_at DESC, id DESC LIMIT 1",
  )
  return rows[0]!
}

const tool = { type: "function", function: { name: "now" } } as const
/** What the client sees of a streamed chat. */
const ask = async (model: string) => {
  let text = ""
  let finish: string | undefined
  let error: string | undefined
  try {
    const stream = await client.chat.completions.create({
      model,
      messages: [{ role: "user", content: "Say hello please." }],
      tools: [tool],
      max_tokens: 64,
      stream: true,
    })
    for await (const { choices } of stream) {
      text += choices[0]?.delta.content ?? ""
      finish = choices[0]?.finish_reason ?? finish
    }
  } catch (cause) {
    error = String((cause as { readonly code?: unknown }).code)
  }
  return { text, finish, error }
}

// a 429 pauses the upstream for its Retry-After, as it should
const isLast = ({ name }: BadWay) => name.includes("429")
const ordered = [...badWays.filter((way) => !isLast(way)), ...badWays.filter(isLast)]

describe("a chat of an upstream that has", { timeout: 30_000 }, () => {
  it.each(ordered)("$name", async ({ scripts, sees, isSlow }) => {
    upstream.play(...scripts)
    const seen = await ask(isSlow ? "slow" : "fast")
    if (sees.text !== undefined) expect(seen.text).toBe(sees.text)
    expect(seen.error).toBe(sees.error)
    if (sees.error === undefined) expect(seen.finish).toBe(sees.finish)
    const { state, cost_micros } = await vi.waitUntil(async () => {
      const row = await lastCall()
      return row.state === "open" ? undefined : row
    })
    const [input, output] = sees.error ? [0, 0] : (sees.charged ?? [0, 0])
    // Rp1,000 and Rp2,000 for a million tokens
    expect(Number(cost_micros)).toBe(input * 1_000 + output * 2_000)
    if (sees.error) expect(["voided", "refused"]).toContain(state)
    else expect(state).toBe("settled")
  })
})

it("usage that the named tokenizer speaks against is not charged", async () => {
  upstream.play(stream(say("one two three"), chunk({}, "stop"), usageOf(4_000, 60), "[DONE]"))
  expect(await ask("counted")).toMatchObject({ text: "one two three", finish: "stop" })
  const row = await lastCall()
  expect(row.state).toBe("settled")
  // the prompt with its tool and template, and the words, by any tokenizer
  expect(Number(row.cost_micros)).toBeGreaterThan(15 * 1_000 + 3 * 2_000)
  expect(Number(row.cost_micros)).toBeLessThan(80 * 1_000 + 20 * 2_000)
  expect(Object.values(platform.output()).join()).toMatch(
    /4000 and 60 tokens, counted here \d+ and \d+/,
  )
  const metrics = await (await fetch(`${platform.url}/metrics`)).text()
  expect(metrics).toMatch(
    /rakit_upstream_usage_corrected_total\{model_name="counted",upstream="u1"\} 1/,
  )
})

it("an answer that breaks its schema fails by name, and costs nothing", async () => {
  const schema = { type: "object", properties: { age: { type: "integer", minimum: 0 } } }
  const create = (text: string) => {
    upstream.play(stream(say(text), chunk({}, "stop"), usageOf(5, 2), "[DONE]"))
    return client.chat.completions.create({
      model: "slow",
      messages: [{ role: "user", content: "How old?" }],
      response_format: { type: "json_schema", json_schema: { name: "x", strict: true, schema } },
    })
  }
  expect((await create('{"age":3}')).choices[0]?.message.content).toBe('{"age":3}')
  await expect(create('{"age":-3}')).rejects.toMatchObject({
    code: "backend_error",
    message: expect.stringMatching(/it breaks the minimum of response_format at \/age/),
  })
  expect(await lastCall()).toMatchObject({ state: "voided" })
  const metrics = await (await fetch(`${platform.url}/metrics`)).text()
  expect(metrics).toMatch(/rakit_upstream_requests_total\{[^}]*outcome="mismatch"\} [1-9]/)
})

it("a client that leaves is charged for what came, and the upstream is left", async () => {
  let left: Promise<unknown> | undefined
  other.play((res, asked) => {
    left = asked.left
    begin(res).write([say("one "), say("two "), say("three")].map(event).join(""))
  })
  const stream = await client.chat.completions.create({
    model: "spare",
    messages: [{ role: "user", content: "Say hello please." }],
    stream: true,
  })
  let text = ""
  for await (const { choices } of stream) {
    text += choices[0]?.delta.content ?? ""
    if (text.includes("three")) break
  }
  stream.controller.abort()
  await left
  const row = await vi.waitUntil(async () => {
    const last = await lastCall()
    return last.state === "open" ? undefined : last
  })
  // 22 bytes of prompt with its role, 13 of text
  expect([row.state, Number(row.cost_micros)]).toEqual(["settled", 6 * 1_000 + 4 * 2_000])
})

it("draws at an upstream, says what it ignored, and refuses what the client itself asks", async () => {
  const picture = greyPng(64, 64)
  upstream.play(json({ created: 1, data: [{ b64_json: picture.toString("base64") }] }))
  const ask = { model: "pictures", prompt: "a red square", size: "64x64" as never }
  const { data } = await client.images.generate(ask)
  const file = Buffer.from(data?.[0]?.b64_json ?? "", "base64")
  expect(await sharp(file).metadata()).toMatchObject({ format: "png", width: 64, height: 64 })
  const [, parameters] = /parameters\0(\{.*?\})/s.exec(file.toString("latin1")) ?? []
  expect(JSON.parse(parameters ?? "{}")).toEqual({
    ...{ prompt: "a red square", model: "pictures", size: "64x64", lora: "none" },
  })
  const { state, cost_micros, evidence } = await vi.waitUntil(async () => {
    const row = await lastCall()
    return row.state === "open" ? undefined : row
  })
  expect([state, Number(cost_micros)]).toEqual(["settled", 150_000_000])
  expect(evidence).toMatchObject({ served_by: { model: "pictures", upstream: "u1" } })
  expect(evidence).not.toHaveProperty("seed")
  const refused = client.images.generate({ ...ask, seed: 4 } as never)
  await expect(refused).rejects.toMatchObject({ code: "unsupported_parameter", param: "seed" })
})

it("falls back on another model, and the receipt names it", async () => {
  upstream.play(json({ error: { message: "boom" } }, 500))
  other.play(good)
  expect(await ask("chain")).toMatchObject({ text: "Hello", finish: "stop" })
  const { evidence, cost_micros } = await lastCall()
  expect(evidence?.served_by).toMatchObject({ model: "spare", upstream: "u1", upstream_model: "m" })
  expect(Number(cost_micros)).toBe(5 * 1_000 + 2 * 2_000)
})

it("names what is wrong with an upstream in /readyz and the log, never its key", async () => {
  const reasonOf = async (): Promise<string> => {
    const reply = await fetch(`${platform.url}/readyz`)
    const { checks } = (await reply.json()) as {
      readonly checks: readonly { readonly name: string; readonly reason?: string }[]
    }
    return checks.find(({ name }) => name === "backend-remote")?.reason ?? "well"
  }
  const until = (wanted: RegExp | string) =>
    vi.waitFor(async () => expect(await reasonOf()).toMatch(wanted), { timeout: 10_000 })
  other.list(json({ object: "list", data: [{ id: "llama" }] }))
  await until(/spare: u1 \(127\.0\.0\.1:\d+\): it does not serve 'm', but 'llama'/)
  other.list(json({ error: { message: `no such key ${secret}` } }, 401))
  await until(/it refuses the key: correct key \(status 401: no such key \*\*\*\)/)
  other.list((res) => res.writeHead(200, { "content-type": "text/html" }).end("<h1>Hi</h1>"))
  await until(/it answers with text\/html, not with JSON/)
  other.list(json({ object: "list", data: [{ id: "m" }] }))
  await until("well")
  const { stdout, stderr } = platform.output()
  expect(stdout + stderr).toContain("upstream.unfit")
  expect(stdout + stderr).not.toContain(secret)
})

it("shows the upstreams in its metrics", async () => {
  const text = await (await fetch(`${platform.url}/metrics`)).text()
  expect(text).toMatch(/rakit_upstream_up\{model_name="spare",upstream="u1"\} 1/)
  expect(text).toMatch(/rakit_upstream_requests_total\{[^}]*outcome="garbled"\} [1-9]/)
  expect(text).toMatch(/rakit_upstream_fallbacks_total\{[^}]*fallback="spare"\} 1/)
  expect(text).toMatch(/rakit_upstream_outstanding\{model_name="fast",upstream="u1"\} 0/)
})
