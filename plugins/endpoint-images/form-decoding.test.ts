import { once } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { Effect, Stream } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import type { ApiError } from "../../core/errors.ts"
import type { BodyPart } from "../../core/ports/endpoint.ts"
import { goodKey } from "../../runtime/http/testing/fixture.ts"
import { plainImage } from "../../testing/images.ts"
import { readEditForm } from "./form-decoding.ts"
import { type ClientFixture, openClient } from "./testing/open-client.ts"

const field = (name: string, value: string): BodyPart => ({ kind: "field", name, value })
const file = (name: string, text: string): BodyPart => ({
  kind: "file",
  name,
  filename: "a.png",
  mediaType: "image/png",
  bytes: Stream.fromIterable([Buffer.from(text.slice(0, 2)), Buffer.from(text.slice(2))]),
})
const read = (...parts: readonly BodyPart[]) =>
  Effect.runPromise(
    readEditForm({ parts: Stream.fromIterable(parts), contentLength: undefined }).pipe(
      Effect.catch(({ code, param }: ApiError) => Effect.succeed({ code, param })),
    ),
  )
const of = (text: string) => Buffer.from(text)

describe("a form", () => {
  it.each([
    ["num_steps", "4", 4],
    ["num_steps", "4.0", 4],
    ["strength", "0.5", 0.5],
    ["guidance_scale", "1e1", 10],
    ["seed", "-1", -1],
    ["num_steps", "", ""],
    ["num_steps", "4x", "4x"],
    ["num_steps", " 4", " 4"],
    ["num_steps", "0x10", "0x10"],
    ["num_steps", "Infinity", "Infinity"],
    ["seed", "007", "007"],
    ["seed", "null", null],
    ["stream", "true", true],
    ["stream", "false", false],
    ["stream", "yes", "yes"],
    ["prompt", "4", "4"],
    ["prompt", "null", "null"],
    ["size", "null", null],
    ["lora", "true", "true"],
  ])("has %s %j as %j", async (name, text, wanted) => {
    expect(await read(field(name, text))).toEqual({ [name]: wanted })
  })

  it("has one file as image, several as images, in their order", async () => {
    for (const name of ["image", "image[]", "images", "images[]"]) {
      expect(await read(file(name, "one"))).toEqual({ image: of("one") })
      expect(await read(file(name, "one"), field("n", "1"), file(name, "two"))).toEqual({
        n: 1,
        images: [of("one"), of("two")],
      })
    }
    expect(await read(field("image", "aGk="))).toEqual({ image: "aGk=" })
    expect(await read(file("image", "one"), file("image[]", "two"))).toEqual({
      image: of("one"),
      images: [of("two")],
    })
  })

  it("has at most five images, and each field once", async () => {
    const six = Array.from({ length: 6 }, () => file("image[]", "one"))
    const invalid = { code: "invalid_request_error" }
    expect(await read(...six)).toEqual({ ...invalid, param: "images" })
    expect(await read(field("n", "1"), field("n", "1"))).toEqual({ ...invalid, param: "n" })
    expect(await read(field("mask", "1"), file("mask", "1"))).toEqual({ ...invalid, param: "mask" })
  })

  it("has nothing of fields that nobody knows, however often they come", async () => {
    const tags = [field("tags[]", "a"), file("tags[]", "b"), field("tags[]", "c")]
    expect(await read(...tags, field("n", "1"), field("__proto__", "1"))).toEqual({ n: 1 })
  })

  it("keeps no bytes of a mask", async () => {
    expect(await read(file("mask", "abc"))).toEqual({ mask: "(a file)" })
  })

  it.each(["prompt", "model", "lora", "num_steps"])("has no file as %s", async (name) => {
    expect(await read(file(name, "abc"))).toEqual({ code: "invalid_request_error", param: name })
  })
})

let fixture: ClientFixture
afterEach(() => fixture?.deps.close())
const png = await plainImage(64, 64, "red").png().toBuffer()

type Entry = readonly [name: string, value: string | Blob]
const good: readonly Entry[] = [
  ["model", "svc-iris"],
  ["prompt", "Merah"],
  ["image", new Blob([new Uint8Array(png)], { type: "image/png" })],
]
const formOf = (...entries: readonly Entry[]) => {
  const form = new FormData()
  for (const [name, value] of entries)
    typeof value === "string" ? form.append(name, value) : form.append(name, value, "a.png")
  return form
}

describe("a form over HTTP", () => {
  it.each([
    ["num_steps", "4x"],
    ["num_steps", "51"],
    ["strength", "1.1"],
    ["n", "2"],
    ["seed", "1.5"],
    ["stream", "1"],
    ["size", "800x800"],
    ["response_format", "url"],
    ["lora", "oil"],
    ["guidance_scale", "-1"],
    ["image", "http://127.0.0.1/a.png"],
  ])("is refused as JSON is: %s %s", async (name, value) => {
    fixture = await openClient()
    const entries = name === "image" ? good.slice(0, 2) : good
    const { status, json } = await fixture.post("edits", formOf(...entries, [name, value]))
    expect([status, json.error]).toMatchObject([
      400,
      { code: "invalid_request_error", param: name },
    ])
    expect(fixture.deps.settlements).toHaveLength(0)
  })

  it("can be a dry run, whose receipt of reading is not charged", async () => {
    fixture = await openClient()
    const { status, json } = await fixture.post("edits", formOf(...good), { "x-dry-run": "1" })
    expect([status, json]).toMatchObject([200, { object: "dry_run", cost_idr: 750 }])
    expect(fixture.model.runs).toHaveLength(0)
  })

  it("is worked on once under an Idempotency-Key, whatever its boundary", async () => {
    fixture = await openClient()
    const send = (more: readonly Entry[] = []) =>
      fixture.post("edits", formOf(...good, ...more), { "idempotency-key": "k" })
    const [first, again, other] = [await send(), await send(), await send([["seed", "1"]])]
    expect([first.status, again.status, other.status]).toEqual([200, 200, 409])
    expect(again.json).toEqual(first.json)
    expect(again.headers.get("idempotent-replayed")).toBe("true")
    expect(fixture.model.runs).toHaveLength(1)
  })

  it("has 50 MB at most, and no other type", async () => {
    fixture = await openClient()
    const announced = request(`${fixture.deps.url}/v1/images/edits`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${goodKey}`,
        "content-type": "multipart/form-data; boundary=x",
        "content-length": 50 * 2 ** 20 + 1,
      },
    })
    announced.flushHeaders()
    const [refused] = (await once(announced, "response")) as [IncomingMessage]
    announced.on("error", () => {}).destroy()
    expect(refused.statusCode).toBe(413)
    const text = await fixture.post("edits", {}, { "content-type": "text/plain" })
    expect([text.status, text.json.error]).toMatchObject([
      415,
      { message: expect.stringContaining("or multipart/form-data") },
    ])
    const generation = await fixture.post("generations", formOf(...good))
    expect([generation.status, generation.json.error?.code]).toEqual([
      415,
      "unsupported_media_type",
    ])
    const torn = await fixture.post("edits", {}, { "content-type": "multipart/form-data" })
    expect(torn.status).toBe(415)
  })
})
