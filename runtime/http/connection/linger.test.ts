import { once } from "node:events"
import { gzipSync } from "node:zlib"
import { Effect, Stream } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { defineEndpoint, type MultipartBody } from "../../../core/ports/endpoint.ts"
import { echo, goodKey, type HttpFixture, openHttpFixture } from "../testing/fixture.ts"
import { openSocket, until } from "../testing/raw.ts"

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

const large = defineEndpoint({
  ...echo,
  id: "large",
  path: "/v1/large",
  aliases: [],
  maxBodyBytes: 2 ** 20,
} as never)

let fixture: HttpFixture
beforeAll(async () => {
  fixture = await openHttpFixture({
    endpoints: [echo, large, upload],
    timings: { lingerMs: 60_000 },
  })
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

const part = Buffer.alloc(20_000, "a")
const smallForm = Buffer.concat([
  Buffer.from(field.repeat(40)),
  Buffer.from('--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'),
])
const end = Buffer.from("\r\n--x--\r\n")

test.each([
  ["a form", "/upload", "multipart/form-data; boundary=x", smallForm, end],
  [
    "JSON",
    "/v1/large",
    "application/json",
    Buffer.from('{"a":"\xff\xff', "latin1"),
    Buffer.alloc(0),
  ],
])(
  "after small %s that is refused, its connection serves on",
  async (_, path, type, head, tail) => {
    const socket = await openSocket(fixture.port)
    let text = ""
    socket.on("data", (bytes) => {
      text += bytes
    })
    const lines = (method: string, url: string, more: readonly string[]) =>
      `${[`${method} ${url} HTTP/1.1`, "Host: x", `Authorization: Bearer ${goodKey}`, ...more].join("\r\n")}\r\n\r\n`
    const length = head.length + 3 * part.length + tail.length
    socket.write(lines("POST", path, [`Content-Type: ${type}`, `Content-Length: ${length}`]))
    socket.write(head)
    await until(() => text.includes("\r\n\r\n"))
    expect(text).toMatch(/^HTTP\/1.1 400 [\s\S]*\r\nconnection: keep-alive\r\n/i)
    text = ""
    for (const piece of [part, part, part, tail]) {
      socket.write(piece)
      // apart, as a line with a delay brings them
      await new Promise((resolve) => setImmediate(resolve))
    }
    socket.write(lines("GET", "/nowhere", []))
    await until(() => text.includes("\r\n\r\n"))
    expect(text).toMatch(/^HTTP\/1.1 404 /)
    socket.destroy()
  },
)

test("a client that does not wait for its 100 gets the refusal whole", async () => {
  const socket = await openSocket(fixture.port)
  const lines = [
    "POST /nowhere HTTP/1.1",
    "Host: x",
    "Expect: 100-continue",
    "Content-Length: 60000",
  ]
  socket.write(`${lines.join("\r\n")}\r\n\r\n`)
  const [reply] = await once(socket, "data")
  expect(String(reply)).toMatch(/^HTTP\/1.1 404 /)
  const ended = once(socket, "close")
  for (let sent = 0; sent < 60_000; sent += 4_000)
    await new Promise<void>((resolve, reject) =>
      socket.write(Buffer.alloc(4_000), (error) => (error ? reject(error) : resolve())),
    )
  await ended
})
