import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { askDashboard } from "../dashboard-client.ts"
import { type Platform, startPlatform } from "../platform.ts"

/** The model fails, is too slow, works, and is busy. */
const faults = [
  { port: "model", operation: "run", fault: "fail", times: 1 },
  { port: "model", operation: "run", fault: "disconnect", after: 1, times: 1 },
]

const folder = mkdtempSync(join(tmpdir(), "rakit-call-log-"))
let platform: Platform
let token: string
beforeAll(async () => {
  const config = join(folder, "test.yaml")
  const text = readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8")
    .replace("../testing", join(import.meta.dirname, ".."))
    .replace("plugins:\n", `plugins:\n  chaos: ${JSON.stringify({ faults })}\n`)
  writeFileSync(config, text)
  platform = await startPlatform({ config })
  const { url, credentials } = platform
  token = (await askDashboard(url, "/dashboard/login", "", credentials)).token
}, 120_000)
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true, force: true })
})

const chat = (model: string, content: string, more: object = {}, signal?: AbortSignal) =>
  fetch(`${platform.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${platform.credentials.api_key}`,
    },
    body: JSON.stringify({ model, messages: [{ role: "user", content }], ...more }),
    ...(signal && { signal }),
  })
const get = async (path: string) =>
  (
    await fetch(platform.url + path, { headers: { authorization: `Bearer ${token}` } })
  ).json() as Promise<{ readonly data: readonly Record<string, unknown>[] }>

it("the log says why calls failed and where their time went; charts count them", async () => {
  for (const expected of [500, 504, 200]) {
    const reply = await chat("svc-lyt", "one two three")
    expect([reply.status, await reply.text()]).toEqual([expected, expect.any(String)])
  }
  const abort = new AbortController()
  const cut = await chat("svc-omni", "word ".repeat(300), { stream: true }, abort.signal)
  const reader = cut.body!.getReader()
  await reader.read()
  abort.abort()
  await reader.read().catch(() => {})
  const streamed = await chat("svc-omni", "a b c", { stream: true })
  await streamed.text()

  const call = { object: "call", batch_id: null, has_receipt: true }
  const stages = { auth: expect.any(Number), plan: expect.any(Number), hold: expect.any(Number) }
  await expect.poll(async () => (await get("/dashboard/calls?status=failed")).data.length).toBe(3)
  const { data } = await get("/dashboard/calls")
  expect(data).toMatchObject([
    { ...call, status: "succeeded", model: "svc-omni", error: null, stages_ms: stages },
    { ...call, status: "failed", http_status: 499, error: { code: "client_closed" } },
    { ...call, status: "succeeded", stages_ms: stages, first_token_ms: expect.any(Number) },
    { ...call, status: "failed", http_status: 504, error: { code: "backend_timeout" } },
    {
      ...call,
      status: "failed",
      http_status: 500,
      cost_idr: 0,
      stages_ms: stages,
      error: { code: "backend_error", message: "injected by the plugin chaos (run)" },
    },
  ])
  const [whole] = data as readonly { first_token_ms: number; duration_ms: number }[]
  // three tokens of 20 ms each
  expect(whole!.first_token_ms).toBeGreaterThan(0)
  expect(whole!.duration_ms).toBeGreaterThan(whole!.first_token_ms + 30)
  expect((await get("/dashboard/calls?code=backend_timeout")).data).toHaveLength(1)

  expect((await get("/dashboard/errors")).data).toMatchObject([
    { code: "backend_error", requests: 1 },
    { code: "backend_timeout", requests: 1 },
    { code: "client_closed", requests: 1 },
  ])
  for (const step of ["day", "hour"]) {
    const from = Math.floor(Date.now() / 1000) - 3_600
    expect(await get(`/dashboard/latency?step=${step}&from=${from}`)).toMatchObject({
      all: { calls: 2, duration_ms: { p95: expect.any(Number) }, first_token_ms: {} },
    })
  }
})
