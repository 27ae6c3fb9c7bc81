import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import {
  createServer as createHttp,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from "node:http"
import { createServer as createHttps } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Stripe from "stripe"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { type Platform, startPlatform } from "../platform.ts"

/** The whole server, its own queue and worker, and receivers over http and https. */
interface Received {
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}
const { webhooks } = new Stripe("sk_test_nobody")
let folder: string
let platform: Platform
const servers: Server[] = []
const got: Record<"http" | "https" | "stranger", Received[]> = { http: [], https: [], stranger: [] }
const hosts: Record<string, string> = {}

/** A self-signed certificate. */
const certificate = (name: string) => {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)]
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "2",
      "-subj",
      `/CN=${name}`,
      "-addext",
      "subjectAltName=IP:127.0.0.1",
      "-keyout",
      key,
      "-out",
      cert,
    ],
    {
      stdio: "ignore",
    },
  )
  return { file: cert, key: readFileSync(key), cert: readFileSync(cert) }
}
const listen = async (name: keyof typeof got, make: (listener: RequestListener) => Server) => {
  const server = make((request, reply) => {
    const chunks: Buffer[] = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      got[name].push({ headers: request.headers, body: Buffer.concat(chunks).toString("utf8") })
      reply.end("ok")
    })
  })
  servers.push(server)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  hosts[name] = `127.0.0.1:${(server.address() as AddressInfo).port}`
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "rakit-webhooks-"))
  const [trusted, stranger] = [certificate("trusted"), certificate("stranger")]
  await listen("http", createHttp)
  await listen("https", (listener) => createHttps(trusted, listener))
  await listen("stranger", (listener) => createHttps(stranger, listener))
  platform = await startPlatform({
    env: {
      RAKIT_WEBHOOK_ALLOW_HOSTS: Object.values(hosts).join(","),
      NODE_EXTRA_CA_CERTS: trusted.file,
    },
  })
})
afterAll(async () => {
  await platform?.close()
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  rmSync(folder, { recursive: true, force: true })
})

const ask = async (method: string, path: string, body?: unknown) => {
  const headers = {
    authorization: `Bearer ${platform.credentials.api_key}`,
    ...(body !== undefined && { "content-type": "application/json" }),
  }
  const reply = await fetch(platform.url + path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies of all shapes
  return { status: reply.status, json: (await reply.json()) as any }
}
const register = async (url: string) =>
  (await ask("POST", "/v1/webhooks", { url, events: ["batch.completed"] })).json

it.each(["http", "https"] as const)(
  "a test event arrives over %s, signed so that stripe's verifier takes it",
  async (name) => {
    const { id, secret } = await register(`${name}://${hosts[name]}/hook`)
    const { status, json } = await ask("POST", `/v1/webhooks/${id}/test`)
    expect([status, json.event]).toEqual([200, "webhook.test"])
    await vi.waitFor(() => expect(got[name]).toHaveLength(1), { timeout: 10_000 })
    const [{ body, headers }] = got[name] as [Received]
    const signature = String(headers["svc-signature"])
    expect(webhooks.constructEvent(body, signature, secret)).toMatchObject({
      event: "webhook.test",
      data: { webhook_id: id },
    })
    expect(() =>
      webhooks.constructEvent(body.replace("webhook.test", "webhook.tess"), signature, secret),
    ).toThrow()
    const deliveries = async () => (await ask("GET", `/v1/webhooks/${id}/deliveries`)).json.data
    await vi.waitFor(
      async () =>
        expect(await deliveries()).toMatchObject([
          {
            id: json.id,
            status: "succeeded",
            request_body: body,
            attempts: [{ status_code: 200, response_body: "ok" }],
          },
        ]),
      {
        timeout: 10_000,
      },
    )
    expect((await ask("GET", `/v1/webhooks/${id}`)).json).toMatchObject({
      last_error: null,
      last_delivery_at: expect.any(Number),
    })
  },
)

it("a receiver whose certificate nobody vouches for gets nothing, although its host is allowed", async () => {
  const { id } = await register(`https://${hosts.stranger}/hook`)
  await ask("POST", `/v1/webhooks/${id}/test`)
  await vi.waitFor(
    async () =>
      expect((await ask("GET", `/v1/webhooks/${id}`)).json.last_error).toMatch(/SELF_SIGNED/),
    { timeout: 10_000 },
  )
  expect(got.stranger).toEqual([])
})

it("what is not public is refused, also by name; bad bodies and ids have the contract's errors", async () => {
  for (const url of [
    "https://127.0.0.1/",
    "https://localhost/",
    "https://169.254.169.254/",
    "http://example.com/",
    "https://a:b@example.com/",
  ]) {
    const { status, json } = await ask("POST", "/v1/webhooks", { url, events: ["batch.failed"] })
    expect([status, json.error.code, json.error.param], url).toEqual([
      400,
      "invalid_request_error",
      "url",
    ])
  }
  expect(
    (await ask("POST", "/v1/webhooks", { url: "https://example.com/", events: ["nope"] })).json
      .error,
  ).toMatchObject({ param: "events" })
  expect((await ask("GET", "/v1/webhooks/wh-none")).json.error).toMatchObject({ code: "not_found" })
})

it("POSTs without a body work with and without a content type", async () => {
  const { id, secret } = await register("https://example.com/hook")
  for (const body of [undefined, {}]) {
    const { status, json } = await ask("POST", `/v1/webhooks/${id}/rotate`, body)
    expect([status, json.id]).toEqual([200, id])
    expect(json.secret).not.toBe(secret)
  }
})
