import { type Cause, Effect, Queue, Stream } from "effect"
import { afterEach, expect, test } from "vitest"
import { type ApiError, apiError } from "../../../core/errors.ts"
import {
  authorized,
  type FixtureOptions,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  post,
  streaming,
} from "../testing/fixture.ts"
import { openSocket, raw, until } from "../testing/raw.ts"

let fixture: HttpFixture
const open = async (events: Stream.Stream<unknown, ApiError>, options: FixtureOptions = {}) => {
  fixture = await openHttpFixture({ endpoints: [streaming(events)], ...options })
}
afterEach(() => fixture.close())

const ask = (signal?: AbortSignal) =>
  post(`${fixture.url}/v1/stream`, "{}", authorized, signal ? { signal } : {})
const rawAsk = `POST /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${goodKey}\r\nContent-Length: 2\r\n\r\n{}`

/** Events that the test emits by hand, and whether the source was stopped. */
const byHand = () => {
  const queue = Effect.runSync(Queue.unbounded<unknown, ApiError | Cause.Done>())
  const seen = { stopped: false }
  const stop = Effect.sync(() => {
    seen.stopped = true
  })
  const events = Stream.fromQueue(queue).pipe(Stream.ensuring(stop))
  return {
    events,
    seen,
    emit: (event: unknown) => Queue.offerUnsafe(queue, event),
    end: () => Queue.endUnsafe(queue),
    fail: (error: ApiError) => Effect.runSync(Queue.fail(queue, error)),
  }
}

/** A client that leaves is seen at once. */
const soonSeen = { timings: { halfClosedCheckMs: 10 } }

const readUntil = async (res: Response, text: string) => {
  const reader = res.body!.getReader()
  let all = ""
  while (!all.includes(text)) {
    const { done, value } = await reader.read()
    if (done) break
    all += Buffer.from(value).toString()
  }
  return { all, reader }
}

test("the head goes out with the first event if that is early, each event at once, and the call is settled before [DONE]", async () => {
  const hand = byHand()
  await open(hand.events, { timings: { headMs: 60_000 } })
  const pending = ask()
  let headers: Headers | undefined
  void pending.then((res) => {
    headers = res.headers
  })
  await until(() => fixture.server.inFlight === 1)
  await new Promise((resolve) => setTimeout(resolve, 30))
  expect(headers).toBeUndefined()
  hand.emit({ n: 1 })
  const res = await pending
  expect(Object.fromEntries(res.headers)).toMatchObject({
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    "x-call-id": expect.any(String),
    "x-ratelimit-limit-requests": "60",
    "x-request-id": expect.stringMatching(/^req_/),
  })
  const first = await readUntil(res, '{"n":1}\n\n')
  expect(first.all).toBe('data: {"n":1}\n\n')
  expect(await fixture.metrics.expose()).toContain("rakit_http_streams_open 1")
  expect(fixture.settlements).toHaveLength(0)
  hand.emit({ n: 2 })
  hand.end()
  let rest = ""
  for (let read = await first.reader.read(); !read.done; read = await first.reader.read())
    rest += Buffer.from(read.value).toString()
  expect(rest).toBe('data: {"n":2}\n\ndata: [DONE]\n\n')
  expect(fixture.settlements).toMatchObject([
    { outcome: "settled", httpStatus: 200, costMicros: 2_000_000n },
  ])
  await until(() => fixture.server.inFlight === 0)
  expect(await fixture.metrics.expose()).toContain("rakit_http_streams_open 0")
})

test("the cost comes as a trailer over HTTP/1.1; HTTP/1.0 gets the events without chunks", async () => {
  await open(Stream.make({ n: 1 }))
  const answer = await raw(
    fixture.port,
    rawAsk.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"),
  )
  expect(answer.text).toMatch(/\r\ntrailer: X-Cost-IDR, Server-Timing\r\n/i)
  expect(answer.text).toMatch(
    /data: \[DONE\]\n\n\r\n0\r\nX-Cost-IDR: 1\r\nServer-Timing: auth;dur=[^\r]*settle;dur=[^\r]*\r\n\r\n$/,
  )
  const old = await raw(fixture.port, rawAsk.replace("HTTP/1.1", "HTTP/1.0"))
  expect(old.text).not.toMatch(/trailer/i)
  expect(old.text).toMatch(/\r\n\r\ndata: \{"n":1\}\n\ndata: \[DONE\]\n\n$/)
})

test("an error before the first event keeps its status", async () => {
  await open(Stream.fail(apiError("backend_busy", undefined, { retryAfterMs: 1500 })))
  const res = await ask()
  expect([res.status, res.headers.get("retry-after"), res.headers.get("retry-after-ms")]).toEqual([
    429,
    "2",
    "1500",
  ])
  expect(await res.json()).toMatchObject({ error: { code: "backend_busy" } })
  expect(fixture.settlements).toMatchObject([{ outcome: "refused", costMicros: 0n }])
})

test("the head does not wait for a late first event; an error after it is the last event", async () => {
  const hand = byHand()
  await open(hand.events, { timings: { headMs: 1 } })
  const res = await ask()
  expect([res.status, res.headers.get("x-ratelimit-limit-requests")]).toEqual([200, "60"])
  hand.fail(apiError("backend_busy"))
  expect(await res.text()).toMatch(/^data: \{"error":\{.*"code":"backend_busy".*\n\n$/)
  expect(fixture.settlements).toMatchObject([{ outcome: "refused", costMicros: 0n }])
})

test("an error after pings alone is the last event", async () => {
  const hand = byHand()
  await open(hand.events, { timings: { pingMs: 20 } })
  const res = await ask()
  hand.fail(apiError("backend_timeout"))
  expect(await res.text()).toMatch(
    /^(: ping\n\n)+data: \{"error":\{.*"code":"backend_timeout".*\n\n$/,
  )
  expect(fixture.settlements).toMatchObject([{ outcome: "voided", costMicros: 0n }])
})

test("an error in the middle is the last event, and costs nothing", async () => {
  await open(Stream.concat(Stream.make({ n: 1 }), Stream.fail(apiError("backend_error"))))
  const res = await ask()
  const frames = (await res.text()).trimEnd().split("\n\n")
  expect(frames).toHaveLength(2)
  expect(JSON.parse(frames[1]!.slice(6))).toEqual({
    error: {
      message: "The model failed; retry once.",
      type: "server_error",
      code: "backend_error",
      param: null,
    },
    request_id: res.headers.get("x-request-id"),
  })
  expect(fixture.settlements).toMatchObject([{ outcome: "voided", costMicros: 0n }])
  await until(() =>
    fixture.log.lines.some(
      ({ fields }) => fields.code === "backend_error" && fields.status === 200,
    ),
  )
})

test("a source that throws in the middle says internal_error and no more", async () => {
  await open(Stream.concat(Stream.make({ n: 1 }), Stream.die(new Error("secret detail"))))
  const text = await (await ask()).text()
  expect(text).toContain('"code":"internal_error"')
  expect(text).not.toContain("secret")
  expect(text).not.toContain("[DONE]")
})

test("an event that is no JSON ends the stream with internal_error", async () => {
  await open(Stream.make({ n: 1 }, 2n))
  const text = await (await ask()).text()
  expect(text).toContain('"code":"internal_error"')
})

test("an empty stream is only [DONE]", async () => {
  await open(Stream.empty)
  const res = await ask()
  expect([res.status, await res.text()]).toEqual([200, "data: [DONE]\n\n"])
})

test("line breaks inside of events stay inside of one data line", async () => {
  await open(Stream.make({ text: "a\n\ndata: b\r\nc\u2028d" }))
  const [line, done, end] = (await (await ask()).text()).split("\n\n")
  expect([JSON.parse(line!.slice(6)), done, end]).toEqual([
    { text: "a\n\ndata: b\r\nc\u2028d" },
    "data: [DONE]",
    "",
  ])
})

test("a quiet stream is pinged, also while its first event takes long", async () => {
  const hand = byHand()
  await open(hand.events, { timings: { pingMs: 20 } })
  const res = await ask()
  expect(res.headers.get("content-type")).toContain("text/event-stream")
  hand.emit({ n: 1 })
  const { all, reader } = await readUntil(res, '"n":1}\n\n: ping\n\n: ping\n\n')
  expect(all).toMatch(/^(: ping\n\n)+data: \{"n":1\}\n\n(: ping\n\n){2,}$/)
  hand.end()
  const { value } = await reader.read()
  expect(Buffer.from(value!).toString()).toMatch(/data: \[DONE\]\n\n$/)
})

test("a client that leaves stops the source and pays for what was produced", async () => {
  const hand = byHand()
  await open(hand.events, soonSeen)
  const leave = new AbortController()
  const pending = ask(leave.signal)
  hand.emit({ n: 1 })
  hand.emit({ n: 2 })
  await readUntil(await pending, '{"n":2}')
  leave.abort()
  await until(() => hand.seen.stopped && fixture.server.inFlight === 0)
  expect(fixture.settlements).toMatchObject([
    { outcome: "settled", httpStatus: 499, costMicros: 2_000_000n },
  ])
  await until(() => fixture.log.lines.some(({ fields }) => fields.cut === true))
})

test("a client that leaves before the first event stops the source and pays nothing", async () => {
  const hand = byHand()
  await open(hand.events, soonSeen)
  const leave = new AbortController()
  const pending = ask(leave.signal).catch((error: Error) => error.name)
  await until(() => fixture.server.inFlight === 1)
  await new Promise((resolve) => setTimeout(resolve, 30))
  leave.abort()
  expect(await pending).toBe("AbortError")
  await until(() => hand.seen.stopped && fixture.server.inFlight === 0)
  expect(fixture.settlements).toMatchObject([{ costMicros: 0n, httpStatus: 499 }])
})

test("a source that runs by itself is held back by a client that does not read, and stops within bounded steps when it leaves", async () => {
  let made = 0
  const endless = Stream.fromEffectRepeat(
    Effect.sync(() => ({ n: ++made, pad: "x".repeat(10_000) })),
  )
  await open(endless)
  const socket = await openSocket(fixture.port)
  socket.pause()
  socket.write(rawAsk)
  await until(() => made > 0)
  let before = -1
  while (before !== made) {
    before = made
    await new Promise((resolve) => setTimeout(resolve, 150))
  }
  // a loopback socket buffers a few MB
  expect(made).toBeLessThan(2_000)
  socket.destroy()
  await until(() => fixture.server.inFlight === 0)
  expect(made - before).toBeLessThan(100)
  expect(fixture.settlements).toHaveLength(1)
})

test("a client that never reads is cut after a while", async () => {
  await open(Stream.fromEffectRepeat(Effect.succeed({ pad: "x".repeat(10_000) })), {
    timings: { writeStallMs: 100 },
  })
  const socket = await openSocket(fixture.port)
  socket.pause()
  socket.write(rawAsk)
  await until(() => fixture.settlements.length === 1)
  expect(fixture.settlements).toMatchObject([{ httpStatus: 499 }])
  await until(() => fixture.server.inFlight === 0)
  expect(fixture.log.lines.filter(({ level }) => level === "error")).toEqual([])
  socket.destroy()
})

test("thousands of events arrive whole and in order", async () => {
  await open(Stream.range(1, 5_000).pipe(Stream.map((n) => ({ n }))))
  const frames = (await (await ask()).text()).trimEnd().split("\n\n")
  expect(
    frames.slice(0, -1).map((frame) => (JSON.parse(frame.slice(6)) as { n: number }).n),
  ).toEqual(Array.from({ length: 5_000 }, (_, i) => i + 1))
})

test("an interrupted source is an error, not silence", async () => {
  await open(Stream.concat(Stream.make({ n: 1 }), Stream.fromEffect(Effect.interrupt)))
  const text = await (await ask()).text()
  expect(text).toContain('"code":"internal_error"')
})
