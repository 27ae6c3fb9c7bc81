import { afterAll, beforeAll, expect, it } from "vitest"
import { addAccount, askDashboard } from "../dashboard-client.ts"
import { type Platform, startPlatform } from "../platform.ts"

let platform: Platform
let mine: string
let theirs: string
beforeAll(async () => {
  platform = await startPlatform()
  const { url, credentials } = platform
  mine = credentials.api_key
  const { token } = await askDashboard(url, "/dashboard/login", "", credentials)
  theirs = (await addAccount(url, token)).key
})
afterAll(() => platform.close())

interface Said {
  readonly id: string
  readonly object: string
  readonly would_succeed: boolean
  readonly error?: { readonly code: string; readonly param: string | null }
}

const ask = async (
  method: string,
  path: string,
  key: string,
  body?: unknown,
  headers: Record<string, string> = { "x-dry-run": "1" },
) => {
  const form = body instanceof FormData
  const reply = await fetch(platform.url + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && !form && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: form ? body : JSON.stringify(body) }),
  })
  return { status: reply.status, headers: reply.headers, json: (await reply.json()) as Said }
}

interface ApiDocument {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { operationId: string; security?: readonly unknown[] }>>>
  >
}

/** Every operation under /v1 whose path names an object. */
const operations = async () => {
  const { paths } = (await (await fetch(`${platform.url}/openapi.json`)).json()) as ApiDocument
  return Object.entries(paths).flatMap(([path, methods]) =>
    path.startsWith("/v1/") && path.includes("{")
      ? Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path }))
      : [],
  )
}

const bodyOf = (path: string) => {
  if (path.endsWith("/complete")) return { part_ids: ["part_1"] }
  if (!path.endsWith("/parts")) return undefined
  const form = new FormData()
  form.set("data", new Blob(["x"]), "part")
  return form
}

/** Makes one object of each kind; returns paths with the ids filled in. */
const makeObjects = async (): Promise<(path: string) => string> => {
  const { url, credentials } = platform
  const really = (path: string, body: unknown) => ask("POST", path, mine, body, {})
  const form = new FormData()
  form.set("purpose", "batch_input")
  const line = { custom_id: "a", method: "POST", url: "/v1/embeddings" }
  const input = { model: "svc-embed", input: "x" }
  form.set("file", new Blob([JSON.stringify({ ...line, body: input })]), "lines.jsonl")
  const file = (await really("/v1/files", form)).json.id
  const batch = await really("/v1/batches", { input_file_id: file, endpoint: "/v1/embeddings" })
  const upload = await really("/v1/uploads", {
    ...{ filename: "a.jsonl", purpose: "batch_input", bytes: 10, mime_type: "text/plain" },
  })
  const webhook = await really("/v1/webhooks", {
    ...{ url: "https://hooks.example.com/", events: ["batch.completed"] },
  })
  const delivery = await really(`/v1/webhooks/${webhook.json.id}/test`, undefined)
  const chat = { model: "svc-lyt", messages: [{ role: "user", content: "x" }], max_tokens: 1 }
  const call = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${credentials.api_key}`, "content-type": "application/json" },
    body: JSON.stringify(chat),
  })
  await call.json()
  return (path) =>
    path
      .replace("/v1/files/{id}", `/v1/files/${file}`)
      .replace("/v1/batches/{id}", `/v1/batches/${batch.json.id}`)
      .replace("/v1/uploads/{id}", `/v1/uploads/${upload.json.id}`)
      .replace("/v1/webhooks/{id}", `/v1/webhooks/${webhook.json.id}`)
      .replace("{delivery_id}", delivery.json.id)
      .replace("{call_id}", call.headers.get("x-call-id") ?? "")
      .replace("{id}", "svc-lyt")
}

it("a dry run of what is not there, or not the caller's, says so; of one's own it runs nothing", async () => {
  const all = await operations()
  expect(all.length).toBeGreaterThan(12)
  const filled = await makeObjects()
  for (const { method, path } of all) {
    const body = () => bodyOf(path)
    const own = filled(path)
    expect([path, /[{}]/.test(own)]).toEqual([path, false])
    const unknown = await ask(method, path.replace(/\{[^}]+\}/g, "file-unknown"), mine, body())
    expect([method, path, unknown.status, unknown.json.error?.code]).toEqual([
      ...[method, path, 404, "not_found"],
    ])
    // public
    if (path.startsWith("/v1/models/")) continue
    const foreign = await ask(method, own, theirs, body())
    expect([method, path, foreign.status]).toEqual([method, path, 404])
    // its parts are not there
    if (path.endsWith("/complete")) continue
    const ours = await ask(method, own, mine, body())
    expect([method, path, ours.status, ours.json.object]).toEqual([method, path, 200, "dry_run"])
  }
})

it("a dry run that names an unknown or foreign file in its body is 404 with the param", async () => {
  const body = (id: string) => ({ input_file_id: id, endpoint: "/v1/embeddings" })
  for (const id of ["file-unknown", "", "'; --", "file-0123456789abcdefghijklmn"])
    expect(await ask("POST", "/v1/batches", mine, body(id))).toMatchObject({
      status: 404,
      json: { error: { code: "not_found", param: "input_file_id" } },
    })
})
