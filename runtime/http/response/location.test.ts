import { Effect, Stream } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { defineEndpoint } from "../../../core/ports/endpoint.ts"
import { type HttpFixture, openHttpFixture } from "../testing/fixture.ts"

const text = "0123456789"
const blob = defineEndpoint({
  id: "blob",
  summary: "Ten bytes, which are elsewhere, too.",
  method: "GET",
  path: "/blob",
  access: "public",
  body: "none",
  maxBodyBytes: 0,
  plan: () =>
    Effect.succeed({
      bound: {},
      run: Effect.succeed({
        status: 200,
        mediaType: "text/plain",
        headers: { etag: '"v1"', "content-disposition": "attachment" },
        bytes: Stream.make(Buffer.from(text)),
        location: "https://store.example/blob?signed",
        ranged: {
          totalBytes: text.length,
          slice: (from: number, to: number) => Stream.make(Buffer.from(text.slice(from, to + 1))),
        },
      }),
    }),
})

let fixture: HttpFixture
beforeAll(async () => {
  fixture = await openHttpFixture({ endpoints: [blob] })
})
afterAll(() => fixture.close())
const get = async (headers: Record<string, string> = {}, method = "GET") => {
  const reply = await fetch(`${fixture.url}/blob`, { method, headers, redirect: "manual" })
  const { status } = reply
  return { status, text: await reply.text(), header: (name: string) => reply.headers.get(name) }
}

it("a plain GET is sent to where the bytes are, without the headers of the bytes", async () => {
  for (const headers of [{}, { range: "bytes=2-3" }] as Record<string, string>[]) {
    const { status, text, header } = await get(headers)
    expect([status, text, header("location")]).toEqual([
      302,
      "",
      "https://store.example/blob?signed",
    ])
    expect(header("cache-control")).toBe("private, no-store")
    expect([header("etag"), header("content-disposition")]).toEqual([null, null])
    expect(header("x-request-id")).not.toBeNull()
  }
})

it("other requests get the bytes here: HEAD, conditions, and pages of other origins", async () => {
  expect(await get({}, "HEAD")).toMatchObject({ status: 200 })
  expect(await get({ "if-none-match": '"v1"' })).toMatchObject({ status: 304 })
  expect(await get({ "if-none-match": '"v2"' })).toMatchObject({ status: 200, text })
  expect(await get({ "if-match": '"v2"' })).toMatchObject({ status: 412 })
  const part = await get({ range: "bytes=2-3", "if-range": '"v1"' })
  expect([part.status, part.text]).toEqual([206, "23"])
  expect(await get({ origin: "https://page.example" })).toMatchObject({ status: 200, text })
  expect(await get({ range: "bytes=10-" })).toMatchObject({ status: 416 })
})
