import { once } from "node:events"
import { gzipSync } from "node:zlib"
import { Effect, Stream } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { defineEndpoint, type MultipartBody } from "../../../core/ports/endpoint.ts"
import { echo, goodKey, type HttpFixture, openHttpFixture } from "../testing/fixture.ts"
import { openSocket } from "../testing/raw.ts"

const upload = defineEndpoint<MultipartBody>({
  id: "upload",
  summary: "Reads a form.",
  method: "POST",
  path: "/upload",
  access: "key",
  body: "multipart",
  maxBodyBytes: 64 * 2 ** 20,
  plan: ({ body }) =>
    Effect.succeed({
      bound: {},
      run: Effect.as(Stream.runDrain(body.parts), { status: 200, json: {} }),
    }),
})

let fixture: HttpFixture
beforeAll(async () => {
  fixture = await openHttpFixture({ endpoints: [echo, upload], timings: { lingerMs: 60_000 } })
})
afterAll(() => fixture.close())

/** As clients do that look for a reply only when their whole body is on its way. */
const replyAfterAll = async (head: readonly string[], body: Uint8Array): Promise<string> => {
  const socket = await openSocket(fixture.port)
  const lines = [...head, "Host: x", `Authorization: Bearer ${goodKey}`]
  socket.write(`${lines.join("\r\n")}\r\n\r\n`)
  await new Promise<unknown>((resolve) => socket.write(body, resolve))
  const [reply] = await once(socket, "data")
  socket.destroy()
  return String(reply)
}

const chunked = (body: Uint8Array): Uint8Array =>
  Buffer.concat([
    Buffer.from(`${body.length.toString(16)}\r\n`),
    body,
    Buffer.from("\r\n0\r\n\r\n"),
  ])
const many = 24 * 2 ** 20
const field = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
const manyFields = Buffer.concat([
  Buffer.from(field.repeat(40)),
  Buffer.from('--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'),
  Buffer.alloc(many, "a"),
  Buffer.from("\r\n--x--\r\n"),
])

test.each([
  [
    "a form",
    400,
    [
      "POST /upload HTTP/1.1",
      "Content-Type: multipart/form-data; boundary=x",
      `Content-Length: ${manyFields.length}`,
    ],
    manyFields,
  ],
  [
    "JSON of unknown length",
    413,
    ["POST /v1/echo HTTP/1.1", "Content-Type: application/json", "Transfer-Encoding: chunked"],
    chunked(Buffer.alloc(many, " ")),
  ],
  [
    "packed JSON",
    413,
    [
      "POST /v1/echo HTTP/1.1",
      "Content-Type: application/json",
      "Content-Encoding: gzip",
      "Transfer-Encoding: chunked",
    ],
    chunked(Buffer.concat([gzipSync(Buffer.alloc(many, " ")), Buffer.alloc(many)])),
  ],
  [
    "JSON whose length was announced",
    413,
    ["POST /v1/echo HTTP/1.1", "Content-Type: application/json", `Content-Length: ${many}`],
    Buffer.alloc(many, " "),
  ],
] as const)(
  "of %s that is refused, the rest is read, so that the reply arrives",
  async (_, status, head, body) => {
    expect(await replyAfterAll(head, body)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  },
)
