import { gzipSync } from "node:zlib"
import { Effect, Stream } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { defaultLimits } from "../../../core/caller.ts"
import { defineEndpoint, type Endpoint, type MultipartBody } from "../../../core/ports/endpoint.ts"
import { fakeIdentity } from "../../../testing/fakes/identity.ts"
import { echo, type HttpFixture, openHttpFixture, post } from "../testing/fixture.ts"
import { raw } from "../testing/raw.ts"

const megabyte = 2 ** 20
const small = { key: "svc_live_one-megabyte", limits: { ...defaultLimits, bodyMb: 1 } }
const usual = { key: "svc_live_usual" }

const at = (path: string, more: object): Endpoint =>
  defineEndpoint({ ...echo, id: path.slice(1), path, aliases: [], ...more } as never)
const counting = (path: string, more: object, count: (body: never) => Effect.Effect<number>) =>
  at(path, {
    maxBodyBytes: 4 * megabyte,
    plan: ({ body }: { readonly body: never }) =>
      Effect.succeed({
        bound: {},
        run: Effect.map(count(body), (bytes) => ({ status: 200, json: { bytes } })),
      }),
    ...more,
  })
const sizeOf = (body: Uint8Array) => Effect.succeed(body.length)
const lengthOf = (body: object) => Effect.succeed(JSON.stringify(body).length)
const sizeOfFile = ({ parts }: MultipartBody) =>
  Stream.runFold(
    Stream.flatMap(parts, (part) => ("bytes" in part ? part.bytes : Stream.empty)),
    () => 0,
    (sum, chunk) => sum + chunk.length,
  ).pipe(Effect.orDie)

let fixture: HttpFixture
beforeAll(async () => {
  const identity = fakeIdentity([small, usual])
  fixture = await openHttpFixture({
    identity: () => identity,
    timings: { lingerMs: 300 },
    endpoints: [
      echo,
      counting("/json", {}, lengthOf as never),
      counting("/bytes", { body: "bytes" }, sizeOf as never),
      counting("/form", { body: "multipart" }, sizeOfFile as never),
    ],
  })
})
afterAll(() => fixture.close())

const bodyOf = (bytes: number) => {
  const rest = JSON.stringify({ model: "m", extra: "" }).length
  return JSON.stringify({ model: "m", extra: "x".repeat(bytes - rest) })
}
const headersOf = (key: string, more: Record<string, string> = {}) => ({
  ...{ authorization: `Bearer ${key}`, "content-type": "application/json" },
  ...more,
})
const outcome = async (reply: Response) => {
  const { error } = (await reply.json()) as { error?: { code: string; message: string } }
  return [reply.status, error?.code, error?.message]
}
const send = async (key: string, body: string | Uint8Array, more: Record<string, string> = {}) =>
  outcome(await post(`${fixture.url}/json`, body, headersOf(key, more)))

const ofKey = "The body is larger than 1 MB, the limit of this key (`limits.body_mb`)."
const refused = [413, "payload_too_large", ofKey]

test("a key's own limit is that of its JSON bodies, to the byte", async () => {
  expect(await send(small.key, bodyOf(megabyte))).toEqual([200, undefined, undefined])
  expect(await send(small.key, bodyOf(megabyte + 1))).toEqual(refused)
  expect(await send(usual.key, bodyOf(megabyte + 1))).toEqual([200, undefined, undefined])
})

test("it counts what arrives unannounced, and what is unpacked", async () => {
  const text = bodyOf(2 * megabyte)
  const unannounced = await fetch(`${fixture.url}/json`, {
    method: "POST",
    headers: headersOf(small.key),
    body: new Blob([text]).stream(),
    duplex: "half",
  } as RequestInit)
  expect(await outcome(unannounced)).toEqual(refused)
  const packed = gzipSync(text)
  expect(packed.length).toBeLessThan(megabyte)
  const gzip = { "content-encoding": "gzip" }
  expect(await send(small.key, packed, gzip)).toEqual(refused)
  expect(await send(usual.key, packed, gzip)).toEqual([200, undefined, undefined])
})

test("an announced body is refused before any of it is sent", async () => {
  const head = `POST /json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${small.key}\r\nContent-Type: application/json\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: ${2 * megabyte}\r\n\r\n`
  const { status, json, text } = await raw(fixture.port, head)
  expect([status, json?.error]).toMatchObject([413, { message: ofKey }])
  expect(text).not.toContain("100 Continue")
})

test("the endpoint's limit stands where it is the smaller one, and its name with it", async () => {
  const reply = await post(`${fixture.url}/v1/echo`, bodyOf(2049), headersOf(small.key))
  const message = "The body is larger than 2048 bytes, the limit of this endpoint."
  expect(await outcome(reply)).toEqual([413, "payload_too_large", message])
})

test("files have the limits of their endpoints alone", async () => {
  const file = new Uint8Array(2 * megabyte)
  const bytes = await post(`${fixture.url}/bytes`, file, headersOf(small.key))
  expect(await bytes.json()).toEqual({ bytes: file.length })
  const form = new FormData()
  form.append("file", new Blob([file]), "a.bin")
  const authorization = `Bearer ${small.key}`
  const init = { method: "POST", headers: { authorization }, body: form }
  const uploaded = await fetch(`${fixture.url}/form`, init)
  expect(await uploaded.json()).toEqual({ bytes: file.length })
})
