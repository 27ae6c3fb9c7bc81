import { Effect, Stream } from "effect"
import fc from "fast-check"
import { afterEach, describe, expect, it } from "vitest"
import type { ApiError } from "../../../core/errors.ts"
import { type BodyPart, defineEndpoint, type MultipartBody } from "../../../core/ports/endpoint.ts"
import { runs } from "../../../testing/property.ts"
import { goodKey, type HttpFixture, openHttpFixture } from "../testing/fixture.ts"
import { openSocket, until } from "../testing/raw.ts"

const shown = (part: BodyPart): Effect.Effect<unknown, ApiError> =>
  part.kind === "field"
    ? Effect.succeed(part)
    : Effect.map(
        Stream.runFold(
          part.bytes,
          () => 0,
          (sum, chunk) => sum + chunk.length,
        ),
        (bytes) => ({
          kind: "file",
          name: part.name,
          filename: part.filename,
          mediaType: part.mediaType,
          bytes,
        }),
      )

const upload = defineEndpoint<MultipartBody>({
  id: "upload",
  summary: "Says what it got.",
  method: "POST",
  path: "/upload",
  access: "key",
  body: "multipart",
  maxBodyBytes: 4_000_000,
  plan: ({ body }) =>
    Effect.succeed({
      bound: {},
      run: Effect.map(Stream.runCollect(Stream.mapEffect(body.parts, shown)), (parts) => ({
        status: 200,
        json: { parts, announced: body.contentLength !== undefined },
      })),
    }),
})

let fixture: HttpFixture
afterEach(() => fixture?.close())
const open = async () => {
  fixture = await openHttpFixture({ endpoints: [upload] })
}
const authorization = `Bearer ${goodKey}`
const post = async (body: FormData) => {
  const reply = await fetch(`${fixture.url}/upload`, {
    method: "POST",
    headers: { authorization },
    body,
  })
  return {
    status: reply.status,
    json: (await reply.json()) as {
      parts?: unknown
      error?: { code: string; param: string | null }
    },
  }
}

const form = (...entries: readonly (readonly [string, string | Blob, string?])[]) => {
  const made = new FormData()
  for (const [name, value, filename] of entries)
    typeof value === "string" ? made.append(name, value) : made.append(name, value, filename)
  return made
}

describe("a multipart body", () => {
  it("comes part by part, in its order, with the file's bytes as a stream", async () => {
    await open()
    const { status, json } = await post(
      form(
        ["file", new Blob(["x".repeat(3_000_000)], { type: "text/plain" }), "a b.jsonl"],
        ["purpose", "batch"],
      ),
    )
    expect(status).toBe(200)
    expect(json).toMatchObject({
      parts: [
        {
          kind: "file",
          name: "file",
          filename: "a b.jsonl",
          mediaType: "text/plain",
          bytes: 3_000_000,
        },
        { kind: "field", name: "purpose", value: "batch" },
      ],
    })
  })

  it("that is too large is 413, announced or not, and one with too many or too long fields 400", async () => {
    await open()
    expect(await post(form(["file", new Blob(["x".repeat(4_000_001)]), "a"]))).toMatchObject({
      status: 413,
      json: { error: { code: "payload_too_large" } },
    })
    expect(await post(form(["purpose", "x".repeat(70_000)]))).toMatchObject({
      status: 400,
      json: { error: { code: "invalid_request_error", param: "purpose" } },
    })
    expect(
      await post(form(...Array.from({ length: 40 }, (_, i) => [`f${i}`, "x"] as const))),
    ).toMatchObject({ status: 400 })
  })

  it("that grows too large while its file is read is 413", async () => {
    await open()
    let pieces = 0
    const body = new ReadableStream({
      start: (controller) =>
        controller.enqueue(
          Buffer.from('--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'),
        ),
      pull: (controller) =>
        ++pieces > 45 ? controller.close() : controller.enqueue(Buffer.alloc(100_000)),
    })
    const headers = { authorization, "content-type": "multipart/form-data; boundary=x" }
    const reply = await fetch(`${fixture.url}/upload`, {
      method: "POST",
      headers,
      body,
      duplex: "half",
    } as RequestInit)
    expect([reply.status, await reply.json()]).toMatchObject([
      413,
      { error: { code: "payload_too_large" } },
    ])
  })

  it("of another type is 415", async () => {
    await open()
    for (const type of [
      "application/json",
      "multipart/form-data",
      "multipart/mixed; boundary=x",
      `multipart/form-data; boundary=${"x".repeat(71)}`,
      "",
    ]) {
      const reply = await fetch(`${fixture.url}/upload`, {
        method: "POST",
        headers: { authorization, "content-type": type },
        body: "{}",
      })
      expect([type, reply.status]).toEqual([type, 415])
    }
  })

  it("that is compressed is 415, which says how it may come", async () => {
    await open()
    for (const encoding of ["gzip", "br", "Deflate"]) {
      const headers = {
        authorization,
        "content-type": "multipart/form-data; boundary=x",
        "content-encoding": encoding,
      }
      const reply = await fetch(`${fixture.url}/upload`, {
        method: "POST",
        headers,
        body: "--x--\r\n",
      })
      expect([reply.status, reply.headers.get("accept-encoding")]).toEqual([415, "identity"])
    }
  })

  it("with a part without a name is 400, be it a file or a field", async () => {
    await open()
    const headers = { authorization, "content-type": "multipart/form-data; boundary=x" }
    for (const disposition of [
      'form-data; filename="a"',
      "form-data",
      "form-data; filename*=utf-8''a; x=\"name\"",
    ]) {
      const reply = await fetch(`${fixture.url}/upload`, {
        method: "POST",
        headers,
        body: `--x\r\nContent-Disposition: ${disposition}\r\n\r\nhello\r\n--x--\r\n`,
      })
      expect([disposition, reply.status, await reply.json()]).toMatchObject([
        disposition,
        400,
        { error: { code: "invalid_request_error" } },
      ])
    }
    expect((await post(form(["purpose", "batch"]))).status).toBe(200)
  })

  it("that is cut or malformed is 400, whatever it is, and the server goes on", async () => {
    await open()
    const whole =
      '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: text/plain\r\n\r\nhello\r\n--x--\r\n'
    const statuses = new Set<number>()
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 8), async (cut) => {
        const reply = await fetch(`${fixture.url}/upload`, {
          method: "POST",
          headers: { authorization, "content-type": "multipart/form-data; boundary=x" },
          body: whole.slice(0, cut),
        })
        statuses.add(reply.status)
        expect([200, 400]).toContain(reply.status)
      }),
      { numRuns: runs(40) },
    )
    expect(statuses.has(400)).toBe(true)
    expect((await post(form(["purpose", "batch"]))).status).toBe(200)
  })

  it("whose client leaves in the middle ends the call", async () => {
    await open()
    const head = `POST /upload HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000\r\n\r\n--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhel`
    const socket = await openSocket(fixture.port)
    socket.write(head)
    await until(() => fixture.server.inFlight === 1)
    socket.destroy()
    await until(() => fixture.server.inFlight === 0)
    expect(fixture.settlements).toMatchObject([{ httpStatus: 499 }])
  })
})
