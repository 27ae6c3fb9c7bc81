import type { Socket } from "node:net"
import { Deferred, Effect, Stream } from "effect"
import { afterEach, expect, test } from "vitest"
import { defineEndpoint, type Endpoint } from "../../../core/ports/endpoint.ts"
import { usageOf } from "../../../core/usage.ts"
import {
  echo,
  type FixtureOptions,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  streaming,
} from "../testing/fixture.ts"
import { openSocket, until } from "../testing/raw.ts"

let fixture: HttpFixture
const open = async (endpoint: Endpoint, options: FixtureOptions = {}) => {
  fixture = await openHttpFixture({ endpoints: [endpoint], ...options })
}
afterEach(() => fixture.close())

/** A whole reply that the test releases, and whether its call was interrupted. */
const slowReply = () => {
  const release = Effect.runSync(Deferred.make<void>())
  const seen = { begun: false, interrupted: false }
  const used = { m: usageOf({ outputTokens: 1 }) }
  const endpoint = defineEndpoint({
    ...echo,
    plan: (call) =>
      Effect.succeed({
        bound: used,
        run: Effect.sync(() => {
          seen.begun = true
          call.context.meter("m", used.m)
        }).pipe(
          Effect.andThen(Deferred.await(release)),
          Effect.as({ status: 200, json: { said: "it" } }),
          Effect.onInterrupt(() =>
            Effect.sync(() => {
              seen.interrupted = true
            }),
          ),
        ),
      }),
  })
  return { endpoint, seen, release: () => Effect.runSync(Deferred.succeed(release, undefined)) }
}

const request = (path: string, body = "{}", more = "") =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${goodKey}\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`
const whole = request("/v1/echo", '{"model":"m"}', "Content-Type: application/json\r\n")
const stream = request("/v1/stream")

/** Sends a request and closes the side for writing. */
const halfClosed = async (text: string) => {
  const socket: Socket = await openSocket(fixture.port)
  const read = { text: "", ended: false }
  socket.on("data", (chunk) => {
    read.text += chunk.toString("latin1")
  })
  socket.on("end", () => {
    read.ended = true
  })
  socket.end(text)
  return { socket, read }
}

const settled = { outcome: "settled", httpStatus: 200 }

test("a client that sends no more gets its whole reply, and the connection is closed then", async () => {
  const slow = slowReply()
  await open(slow.endpoint)
  const { read } = await halfClosed(whole)
  await until(() => slow.seen.begun)
  slow.release()
  await until(() => read.ended)
  expect(read.text).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\{"said":"it"\}$/)
  expect(fixture.settlements).toMatchObject([settled])
})

test("it gets a reply that begins after the probe, too", async () => {
  const slow = slowReply()
  await open(slow.endpoint, { timings: { halfClosedCheckMs: 1 } })
  const { read } = await halfClosed(whole)
  await until(() => read.text.includes("100 Continue"))
  slow.release()
  await until(() => read.ended)
  expect(read.text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[\s\S]*"it"\}$/)
  expect(slow.seen.interrupted).toBe(false)
})

test("it gets its whole stream", async () => {
  const endpoint = streaming(
    Stream.range(1, 5).pipe(
      Stream.map((n) => ({ n })),
      Stream.tap(() => Effect.sleep("5 millis")),
    ),
  )
  await open(endpoint)
  const { read } = await halfClosed(stream)
  await until(() => read.ended)
  expect(read.text.match(/data: \{"n":\d\}/g)).toHaveLength(5)
  expect(read.text).toContain("data: [DONE]")
  expect(fixture.settlements).toMatchObject([settled])
})

test("it gets the replies to all requests that it has sent on the connection", async () => {
  await open(echo)
  const { read } = await halfClosed(whole.repeat(3))
  await until(() => read.ended)
  expect(read.text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3)
})

test("a client that has left is interrupted, and pays for what was produced", async () => {
  const slow = slowReply()
  await open(slow.endpoint, { timings: { halfClosedCheckMs: 1 } })
  const { socket } = await halfClosed(whole)
  await until(() => slow.seen.begun)
  socket.destroy()
  await until(() => slow.seen.interrupted && fixture.server.inFlight === 0)
  expect(fixture.settlements).toMatchObject([{ outcome: "settled", httpStatus: 499 }])
})

test("a client that has left a quiet stream is interrupted before the next ping", async () => {
  await open(streaming(Stream.concat(Stream.make({ n: 1 }), Stream.never)), {
    timings: { halfClosedCheckMs: 1 },
  })
  const { socket, read } = await halfClosed(stream)
  await until(() => read.text.includes('{"n":1}'))
  socket.destroy()
  await until(() => fixture.server.inFlight === 0)
  expect(fixture.settlements).toMatchObject([{ outcome: "settled", httpStatus: 499 }])
})
