import { Effect, Stream } from "effect"
import fc from "fast-check"
import { afterEach, describe, expect, it } from "vitest"
import { defineEndpoint } from "../../../core/ports/endpoint.ts"
import { goodKey, type HttpFixture, openHttpFixture } from "../testing/fixture.ts"
import { rangeOf } from "./conditional.ts"

const text = "0123456789"
const modified = "Sat, 28 Nov 2026 00:00:00 GMT"
const blob = defineEndpoint({
  id: "blob",
  summary: "Ten bytes.",
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
        mediaType: "application/octet-stream",
        headers: { etag: '"v1"', "last-modified": modified },
        bytes: Stream.make(Buffer.from(text)),
        ranged: {
          totalBytes: text.length,
          slice: (from: number, to: number) => Stream.make(Buffer.from(text.slice(from, to + 1))),
        },
      }),
    }),
})

let fixture: HttpFixture
afterEach(() => fixture?.close())
const get = async (headers: Record<string, string>, method = "GET") => {
  fixture = await openHttpFixture({ endpoints: [blob] })
  const reply = await fetch(`${fixture.url}/blob`, { method, headers })
  return {
    status: reply.status,
    text: await reply.text(),
    range: reply.headers.get("content-range"),
    length: reply.headers.get("content-length"),
    accepts: reply.headers.get("accept-ranges"),
  }
}

describe("a download", () => {
  it.each([
    ["bytes=2-4", "234", "bytes 2-4/10"],
    ["bytes=7-", "789", "bytes 7-9/10"],
    ["bytes=-3", "789", "bytes 7-9/10"],
    ["bytes=0-99", text, "bytes 0-9/10"],
    ["bytes=3-99999999999999999999", "3456789", "bytes 3-9/10"],
    ["bytes=-99999999999999999999", text, "bytes 0-9/10"],
    ["Bytes=2-4", "234", "bytes 2-4/10"],
    ["bytes=-99", text, "bytes 0-9/10"],
  ])("of %s is 206 with that part", async (range, part, contentRange) => {
    expect(await get({ range })).toEqual({
      status: 206,
      text: part,
      range: contentRange,
      length: String(part.length),
      accepts: "bytes",
    })
  })

  it.each(["bytes=10-", "bytes=99-100", "bytes=-0"])("of %s is 416", async (range) => {
    expect(await get({ range })).toMatchObject({ status: 416, range: "bytes */10" })
  })

  it.each(["bytes=4-2", "bytes=0-1,3-4", "lines=1-2", "bytes=", "bytes=a-b", "nonsense"])(
    "of %s is the whole: what is no range of ours is ignored",
    async (range) => {
      expect(await get({ range })).toEqual({
        status: 200,
        text,
        range: null,
        length: "10",
        accepts: "bytes",
      })
    },
  )

  it("resumes only while the bytes are the same", async () => {
    expect((await get({ range: "bytes=5-", "if-range": '"v1"' })).status).toBe(206)
    expect((await get({ range: "bytes=5-", "if-range": modified })).status).toBe(206)
    for (const other of ['"v0"', 'W/"v1"', "Sat, 28 Nov 2026 00:00:01 GMT"])
      expect(await get({ range: "bytes=5-", "if-range": other })).toMatchObject({
        status: 200,
        text,
      })
  })

  it.each([
    [416, { range: "bytes=10-" }],
    [412, { "if-match": '"v0"' }],
  ])(
    "that is refused with %i says the key's limits, as every reply to it does",
    async (status, asked) => {
      fixture = await openHttpFixture({ endpoints: [{ ...blob, access: "key" }] })
      const reply = await fetch(`${fixture.url}/blob`, {
        headers: { authorization: `Bearer ${goodKey}`, ...asked } as Record<string, string>,
      })
      await reply.text()
      expect([
        reply.status,
        reply.headers.get("x-ratelimit-limit-requests"),
        reply.headers.get("x-call-id"),
        reply.headers.get("etag"),
      ]).toEqual([status, "60", expect.any(String), null])
    },
  )

  it("says its length to HEAD", async () => {
    expect(await get({}, "HEAD")).toMatchObject({
      status: 200,
      text: "",
      length: "10",
      accepts: "bytes",
    })
  })
})

it("a satisfiable range always lies inside", () => {
  fc.assert(
    fc.property(
      fc.nat(1000),
      fc.option(fc.nat(2000)),
      fc.option(fc.nat(2000)),
      (total, first, last) => {
        const range = rangeOf(
          { method: "GET", headers: { range: `bytes=${first ?? ""}-${last ?? ""}` } } as never,
          total,
          {},
        )
        if (typeof range === "string") return
        expect(range.from).toBeGreaterThanOrEqual(0)
        expect(range.from).toBeLessThanOrEqual(range.to)
        expect(range.to).toBeLessThan(total)
      },
    ),
  )
})
