import { Effect, Stream } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { apiError } from "../../../core/errors.ts"
import { defineEndpoint, type MultipartBody } from "../../../core/ports/endpoint.ts"
import { goodKey, type HttpFixture, openHttpFixture } from "../testing/fixture.ts"

let made = 0
/** Makes something of the form, unless it says `fail`. */
const create = defineEndpoint<MultipartBody>({
  id: "create",
  summary: "Makes one.",
  method: "POST",
  path: "/create",
  access: "key",
  body: "multipart",
  maxBodyBytes: 4_000_000,
  creates: true,
  plan: ({ body }) =>
    Effect.succeed({
      bound: {},
      run: Effect.gen(function* () {
        let fails = false
        yield* Stream.runForEach(body.parts, (part) => {
          if (part.kind === "file") return Stream.runDrain(part.bytes)
          fails ||= part.value === "fail"
          return Effect.void
        })
        if (fails) return yield* apiError("backend_error")
        return { status: 201, json: { made: ++made } }
      }),
    }),
})

let fixture: HttpFixture
afterEach(() => fixture?.close())

type Entry = readonly [string, string | Blob, string?]
const post = async (entries: readonly Entry[], key = "k") => {
  const body = new FormData()
  for (const [name, value, filename] of entries)
    typeof value === "string" ? body.append(name, value) : body.append(name, value, filename)
  const reply = await fetch(`${fixture.url}/create`, {
    method: "POST",
    headers: { authorization: `Bearer ${goodKey}`, "idempotency-key": key },
    body,
  })
  return {
    status: reply.status,
    headers: reply.headers,
    json: (await reply.json()) as { made?: number; error?: { code: string; param: string } },
  }
}
const file = (text: string, name = "a.jsonl", type = ""): Entry => [
  "file",
  new Blob([text], { type }),
  name,
]
const purpose: Entry = ["purpose", "batch"]

describe("a form under an Idempotency-Key", () => {
  it("is worked on once; the same one again, with another boundary and in another order, gets the first reply", async () => {
    fixture = await openHttpFixture({ endpoints: [create] })
    const first = await post([file("x".repeat(300_000)), purpose])
    expect(first).toMatchObject({ status: 201, json: { made } })
    for (const entries of [
      [file("x".repeat(300_000)), purpose],
      [purpose, file("x".repeat(300_000))],
    ]) {
      const again = await post(entries)
      expect([
        again.status,
        again.json,
        again.headers.get("idempotent-replayed"),
        again.headers.get("x-call-id"),
      ]).toEqual([201, first.json, "true", first.headers.get("x-call-id")])
    }
    expect(made).toBe(first.json.made)
  })

  it("another one is 409, also of the same length, with the key's headers", async () => {
    fixture = await openHttpFixture({ endpoints: [create] })
    await post([file("xx"), purpose])
    for (const entries of [
      [file("xy"), purpose],
      [file("xx", "b.jsonl"), purpose],
      [file("xx", "a.jsonl", "text/plain"), purpose],
      [file("xx"), ["purpose", "hctab"]],
      [file("xx")],
    ] as Entry[][]) {
      const other = await post(entries)
      expect([other.status, other.json.error]).toMatchObject([
        409,
        { code: "conflict", param: "Idempotency-Key" },
      ])
      expect([
        other.headers.get("x-ratelimit-limit-requests"),
        other.headers.get("idempotent-replayed"),
      ]).toEqual(["60", null])
    }
  })

  it("that failed may come again, changed; one that can't be read is no replay", async () => {
    fixture = await openHttpFixture({ endpoints: [create] })
    expect((await post([["purpose", "fail"]])).status).toBe(500)
    const good = await post([purpose])
    expect([good.status, good.headers.get("idempotent-replayed")]).toEqual([201, null])
    expect((await post([file("x".repeat(5_000_000))])).status).toBe(413)
    const broken = await post(Array.from({ length: 40 }, (_, i) => [`f${i}`, "x"] as const))
    expect([broken.status, broken.headers.get("x-ratelimit-limit-requests")]).toEqual([400, "60"])
  })
})
