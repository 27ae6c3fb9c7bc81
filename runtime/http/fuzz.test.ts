import {
  array,
  assert,
  asyncProperty,
  constantFrom,
  oneof,
  record,
  string,
  tuple,
  uint8Array,
} from "fast-check"
import { afterAll, beforeAll, expect, test } from "vitest"
import { runs } from "../../testing/property.ts"
import { echo, goodKey, type HttpFixture, openHttpFixture, thing } from "./testing/fixture.ts"
import { raw } from "./testing/raw.ts"

let fixture: HttpFixture
beforeAll(async () => {
  fixture = await openHttpFixture({
    endpoints: [echo, thing],
    timings: {
      lingerMs: 20,
      requestTimeoutMs: 150,
      headersTimeoutMs: 100,
      timeoutCheckMs: 20,
      keepAliveTimeoutMs: 20,
    },
  })
})
afterAll(() => fixture.close())

const noTrouble = async () => {
  expect((await fetch(`${fixture.url}/healthz`)).status).toBe(200)
  expect(fixture.log.lines.filter(({ level }) => level === "error")).toEqual([])
}
const statusesOf = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => Number(match[1]))

const token = constantFrom(
  "GET",
  "POST",
  "DELETE",
  "PURGE",
  "get",
  "\r\n",
  " ",
  ":",
  "/",
  "/v1/echo",
  "/v1/things/%",
  "HTTP/1.1",
  "HTTP/1.0",
  "Host: x",
  "Content-Length: 5",
  "Transfer-Encoding: chunked",
  "0\r\n\r\n",
)
const bytes = oneof(
  uint8Array({ maxLength: 300 }).map((b) => Buffer.from(b)),
  array(oneof(token, string({ maxLength: 5 })), { maxLength: 30 }).map((parts) =>
    Buffer.from(parts.join("")),
  ),
)

test("any bytes on a connection: no 5xx, no crash, and every answer is whole", async () => {
  await assert(
    asyncProperty(array(bytes, { minLength: 8, maxLength: 8 }), async (connections) => {
      const answers = await Promise.all(connections.map((input) => raw(fixture.port, input, 2_000)))
      for (const { text } of answers)
        for (const status of statusesOf(text)) expect(status).toBeLessThan(500)
    }),
    { numRuns: runs(25) },
  )
  await noTrouble()
}, 60_000)

const headerName = constantFrom(
  "Content-Type",
  "Content-Encoding",
  "X-Request-ID",
  "Idempotency-Key",
  "X-Dry-Run",
  "Expect",
  "Accept",
  "Range",
  "Cookie",
  "X-Forwarded-For",
  "Authorization",
)
const headerValue = string({ unit: "grapheme-ascii", maxLength: 40 }).map((text) =>
  text.replace(/[\r\n]/g, ""),
)
const request = record({
  method: constantFrom("GET", "POST", "PUT", "OPTIONS", "HEAD"),
  path: oneof(
    constantFrom("/v1/echo", "/v1/things/1", "/", "/readyz"),
    string({ unit: "grapheme-ascii", maxLength: 20 }).map((s) => `/${s.replace(/[\s#]/g, "")}`),
  ),
  headers: array(tuple(headerName, headerValue), { maxLength: 6 }),
  body: oneof(
    uint8Array({ maxLength: 3_000 }),
    string({ maxLength: 200 }).map((s) => Buffer.from(JSON.stringify({ model: s }))),
  ),
})

test("any headers and bodies on well-framed requests with a good key: no 5xx but for what is not our business", async () => {
  await assert(
    asyncProperty(array(request, { minLength: 8, maxLength: 8 }), async (requests) => {
      const answers = await Promise.all(
        requests.map(({ method, path, headers, body }) => {
          const lines = [
            `${method} ${path} HTTP/1.1`,
            "Host: x",
            `Authorization: Bearer ${goodKey}`,
            `Content-Length: ${body.length}`,
            "Connection: close",
            ...headers.map(([name, value]) => `${name}: ${value}`),
          ]
          return raw(fixture.port, [`${lines.join("\r\n")}\r\n\r\n`, body], 2_000)
        }),
      )
      for (const [i, { text, status }] of answers.entries()) {
        expect([requests[i], status]).toEqual([requests[i], expect.any(Number)])
        for (const each of statusesOf(text))
          expect([requests[i], each < 500]).toEqual([requests[i], true])
        expect(text.toLowerCase()).toContain("x-request-id: ")
      }
    }),
    { numRuns: runs(40) },
  )
  await noTrouble()
}, 60_000)
