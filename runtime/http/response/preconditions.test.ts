import { Effect, Stream } from "effect"
import { afterEach, expect, it } from "vitest"
import { defineEndpoint } from "../../../core/ports/endpoint.ts"
import { type HttpFixture, openHttpFixture } from "../testing/fixture.ts"

const modified = "Thu, 15 Jan 2026 00:00:00 GMT"
const page = (etag?: string) =>
  defineEndpoint({
    id: "page",
    summary: "Bytes.",
    method: "GET",
    path: "/page",
    access: "public",
    body: "none",
    maxBodyBytes: 0,
    plan: () =>
      Effect.succeed({
        bound: {},
        run: Effect.succeed({
          status: 200,
          mediaType: "text/plain",
          headers: {
            "cache-control": "no-cache",
            "content-length": "2",
            ...(etag && { etag, "last-modified": modified }),
          },
          bytes: Stream.make(Buffer.from("hi")),
        }),
      }),
  })

let fixture: HttpFixture
afterEach(() => fixture.close())
const ask = async (known: string, etag?: string, method = "GET") => {
  fixture = await openHttpFixture({ endpoints: [page(etag)] })
  return fetch(`${fixture.url}/page`, { method, headers: { "if-none-match": known } })
}

it.each(['"a"', 'W/"a"', '"b", "a"', "*"])(
  "answers 304 without a body to who has it: %s",
  async (known) => {
    const reply = await ask(known, '"a"')
    expect([
      reply.status,
      await reply.text(),
      reply.headers.get("etag"),
      reply.headers.get("cache-control"),
    ]).toEqual([304, "", '"a"', "no-cache"])
    expect([reply.headers.get("content-length"), reply.headers.get("content-type")]).toEqual([
      null,
      null,
    ])
  },
)

it("HEAD gets the same", async () => {
  expect((await ask('"a"', '"a"', "HEAD")).status).toBe(304)
})

it.each([
  ['"b"', '"a"'],
  ["a", '"a"'],
  ["*", undefined],
])("sends all of it otherwise: %s for %s", async (known, etag) => {
  const reply = await ask(known, etag)
  expect([reply.status, await reply.text()]).toEqual([200, "hi"])
})

const [before, after] = ["Wed, 14 Jan 2026 23:59:59 GMT", "Thu, 15 Jan 2026 00:00:01 GMT"]
it.each([
  [{ "if-match": '"a"' }, 200],
  [{ "if-match": '"b", "a"' }, 200],
  [{ "if-match": "*" }, 200],
  [{ "if-match": '"b"' }, 412],
  [{ "if-match": 'W/"a"' }, 412],
  [{ "if-match": '"b"', "if-none-match": '"a"' }, 412],
  [{ "if-match": '"a"', "if-none-match": '"a"' }, 304],
  [{ "if-match": '"a"', "if-unmodified-since": before }, 200],
  [{ "if-unmodified-since": modified }, 200],
  [{ "if-unmodified-since": before }, 412],
  [{ "if-unmodified-since": "some day" }, 200],
  [{ "if-modified-since": modified }, 304],
  [{ "if-modified-since": after }, 304],
  [{ "if-modified-since": before }, 200],
  [{ "if-modified-since": "some day" }, 200],
  [{ "if-modified-since": after, "if-none-match": '"b"' }, 200],
])("keeps to the conditions of RFC 9110 in its order: %j is %i", async (headers, status) => {
  fixture = await openHttpFixture({ endpoints: [page('"a"')] })
  for (const method of ["GET", "HEAD"]) {
    const reply = await fetch(`${fixture.url}/page`, { method, headers })
    const text = await reply.text()
    expect([method, reply.status]).toEqual([method, status])
    if (status === 412 && method === "GET")
      expect(JSON.parse(text)).toMatchObject({
        error: { code: "precondition_failed", type: "invalid_request_error" },
      })
  }
})
