import { Effect, Fiber, Stream } from "effect"
import { afterEach, expect, test } from "vitest"
import { defaultLimits } from "../../../core/caller.ts"
import {
  echo,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  post,
  streaming,
  thing,
} from "../testing/fixture.ts"
import { openSocket, raw, until } from "../testing/raw.ts"

let fixture: HttpFixture
afterEach(() => fixture.close())

const ticking = (ms: number, n = Number.POSITIVE_INFINITY) =>
  Stream.tick(ms).pipe(
    Stream.take(n),
    Stream.zipWithIndex,
    Stream.map(([, i]) => ({ n: i })),
  )
const collect = async (port: number) => {
  const socket = await openSocket(port)
  const seen = { text: "", closed: false }
  socket.on("data", (chunk) => {
    seen.text += chunk
  })
  socket.on("close", () => {
    seen.closed = true
  })
  return { socket, seen }
}

test("an open stream ends properly, idle connections close, new ones are refused", async () => {
  fixture = await openHttpFixture({ endpoints: [streaming(ticking(20, 15)), thing] })
  const res = await post(`${fixture.url}/v1/stream`, "{}")
  const idle = await collect(fixture.port)
  idle.socket.write("GET /v1/things/1 HTTP/1.1\r\nHost: x\r\n\r\n")
  const silent = await collect(fixture.port)
  await until(() => idle.seen.text.includes('"1"'))
  const drained = Effect.runPromise(fixture.server.drain(5_000))
  await until(() => idle.seen.closed && silent.seen.closed)
  await expect(fetch(`${fixture.url}/healthz`)).rejects.toThrow()
  const text = await res.text()
  expect(text).toMatch(/"n":14\}\n\ndata: \[DONE\]\n\n$/)
  await drained
  expect(fixture.settlements).toMatchObject([{ outcome: "settled", httpStatus: 200 }])
})

test("a stream that only watches ends at once, with an error as its last event", async () => {
  const endless = {
    ...streaming(ticking(20)),
    method: "GET",
    body: "none",
    access: "session",
  } as const
  const resume = () =>
    Effect.succeed({
      tenant: { account: "acc", mode: "live" as const },
      scopes: ["*"],
      role: "user" as const,
      limits: defaultLimits,
    })
  const sessions = () => ({ authenticate: resume, resume })
  fixture = await openHttpFixture({ endpoints: [endless], sessions })
  const res = await fetch(`${fixture.url}/v1/stream`, {
    headers: { authorization: "Bearer session" },
  })
  expect(res.status).toBe(200)
  await Effect.runPromise(fixture.server.drain(600_000))
  expect(await res.text()).toMatch(/\n\ndata: \{"error":.*"server_starting".*\}\n\n$/)
})

test("what comes over an open connection is still answered, with Connection: close; /readyz says draining", async () => {
  fixture = await openHttpFixture({ endpoints: [streaming(ticking(20, 20)), thing] })
  const late = await collect(fixture.port)
  // half a request counts as busy, so the drain leaves the connection open
  late.socket.write("GET /readyz HTTP/1.1\r\nHost: x\r\n")
  const res = await post(`${fixture.url}/v1/stream`, "{}")
  const drained = Effect.runPromise(fixture.server.drain(5_000))
  await new Promise((resolve) => setTimeout(resolve, 20))
  late.socket.write("\r\n")
  await until(() => late.seen.closed)
  expect(late.seen.text).toMatch(
    /^HTTP\/1\.1 503 .*\r\nConnection: close\r\n.*"status":"draining"/s,
  )
  expect(await res.text()).toContain("[DONE]")
  await drained
})

test("for a delay it goes on serving new connections, with Connection: close, and /readyz says draining", async () => {
  fixture = await openHttpFixture({ endpoints: [thing] })
  const kept = await collect(fixture.port)
  kept.socket.write("GET /v1/things/1 HTTP/1.1\r\nHost: x\r\n\r\n")
  await until(() => kept.seen.text.includes('"1"'))
  const drained = Effect.runPromise(fixture.server.drain(5_000, 300))
  const ready = await fetch(`${fixture.url}/readyz`)
  expect([ready.status, ready.headers.get("connection")]).toEqual([503, "close"])
  expect(await ready.json()).toMatchObject({ status: "draining" })
  const served = await fetch(`${fixture.url}/v1/things/2`, {
    headers: { authorization: `Bearer ${goodKey}` },
  })
  expect([served.status, served.headers.get("connection")]).toEqual([200, "close"])
  // idle ones stay until the delay is over: a load balancer may be sending on them
  expect(kept.seen.closed).toBe(false)
  await drained
  await until(() => kept.seen.closed)
  await expect(fetch(`${fixture.url}/healthz`)).rejects.toThrow()
})

test("after the timeout a stream gets a last error event and its call is settled before the drain ends", async () => {
  fixture = await openHttpFixture({ endpoints: [streaming(ticking(10))] })
  const res = await post(`${fixture.url}/v1/stream`, "{}")
  await Effect.runPromise(fixture.server.drain(100))
  expect(fixture.settlements).toHaveLength(1)
  expect(fixture.server.inFlight).toBe(0)
  const frames = (await res.text()).trimEnd().split("\n\n")
  expect(JSON.parse(frames.at(-1)!.slice(6))).toMatchObject({
    error: { code: "server_starting" },
    request_id: res.headers.get("x-request-id"),
  })
})

test("after the timeout a request without an answer gets 503", async () => {
  fixture = await openHttpFixture({
    endpoints: [{ ...thing, plan: () => Effect.succeed({ bound: {}, run: Effect.never }) }],
  })
  const pending = fetch(`${fixture.url}/v1/things/1`)
  await until(() => fixture.server.inFlight === 1)
  await Effect.runPromise(fixture.server.drain(50))
  const res = await pending
  expect([res.status, res.headers.get("connection"), res.headers.get("retry-after")]).toEqual([
    503,
    "close",
    "1",
  ])
  expect(await res.json()).toMatchObject({ error: { code: "server_starting" } })
})

test("a client that does not read can't hold the drain up", async () => {
  fixture = await openHttpFixture({
    endpoints: [streaming(Stream.fromEffectRepeat(Effect.succeed({ pad: "x".repeat(10_000) })))],
    timings: { settleMs: 200 },
  })
  const { socket } = await collect(fixture.port)
  socket.pause()
  socket.write(
    `POST /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${goodKey}\r\nContent-Length: 2\r\n\r\n{}`,
  )
  await until(() => fixture.server.inFlight === 1)
  const started = performance.now()
  await Effect.runPromise(fixture.server.drain(50))
  expect(performance.now() - started).toBeLessThan(2_000)
  await until(() => fixture.server.inFlight === 0)
  expect(fixture.settlements).toHaveLength(1)
})

test("an idle server drains at once, twice is harmless, and the second may be interrupted", async () => {
  fixture = await openHttpFixture({ endpoints: [echo] })
  await raw(fixture.port, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
  const started = performance.now()
  await Effect.runPromise(fixture.server.drain(10_000))
  expect(performance.now() - started).toBeLessThan(500)
  await Effect.runPromise(Fiber.interrupt(Effect.runFork(fixture.server.drain(10_000))))
})
