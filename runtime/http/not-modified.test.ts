import { Effect, Stream } from "effect"
import { afterEach, expect, it } from "vitest"
import { defineEndpoint } from "../../core/endpoint.ts"
import { type House, openHouse } from "./testing/house.ts"

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
          headers: { "cache-control": "no-cache", "content-length": "2", ...(etag && { etag }) },
          bytes: Stream.make(Buffer.from("hi")),
        }),
      }),
  })

let house: House
afterEach(() => house.close())
const ask = async (known: string, etag?: string, method = "GET") => {
  house = await openHouse({ endpoints: [page(etag)] })
  return fetch(`${house.url}/page`, { method, headers: { "if-none-match": known } })
}

it.each(['"a"', 'W/"a"', '"b", "a"', "*"])("answers 304 without a body to who has it: %s", async (known) => {
  const reply = await ask(known, '"a"')
  expect([reply.status, await reply.text(), reply.headers.get("etag"), reply.headers.get("cache-control")]).toEqual([304, "", '"a"', "no-cache"])
  expect([reply.headers.get("content-length"), reply.headers.get("content-type")]).toEqual([null, null])
})

it("HEAD is told the same", async () => {
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
