import { Effect, Schema, Stream } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { apiError } from "../../../core/errors.ts"
import { defineEndpoint } from "../../../core/ports/endpoint.ts"
import type { LogLine } from "../../../testing/fakes/log.ts"
import {
  authorized,
  echo,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  post,
  streaming,
} from "../testing/fixture.ts"

let fixture: HttpFixture
afterEach(() => fixture.close())

const finishedLines = (): readonly LogLine[] =>
  fixture.log.lines.filter(({ event }) => event === "request.finished")
const nextLine = async (): Promise<LogLine> => {
  const before = finishedLines().length
  return vi.waitFor(() => {
    const line = finishedLines()[before] ?? finishedLines().at(-1)
    expect(line).toBeDefined()
    return line!
  })
}
const open = async (
  ...endpoints: NonNullable<Parameters<typeof openHttpFixture>[0]>["endpoints"] & object
) => {
  fixture = await openHttpFixture({ endpoints })
}

const whose = { account: "acc", mode: "live", key: "key", model: "m" }
const failing = defineEndpoint<{ readonly model: string }>({
  id: "fails",
  summary: "",
  method: "POST",
  path: "/v1/fails",
  access: "key",
  body: Schema.Struct({ model: Schema.String }),
  maxBodyBytes: 1000,
  plan: () => Effect.fail(apiError("backend_busy")),
})
const page = defineEndpoint({
  id: "page",
  summary: "",
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
        mediaType: "text/html",
        bytes: Stream.make(new TextEncoder().encode("<p>")),
      }),
    }),
})

describe("one line of the log for each request", () => {
  it("says whose call it was, what it used and cost, and how long its stages took", async () => {
    await open(echo)
    await (await post(`${fixture.url}/v1/echo`, '{"model":"m"}')).json()
    const { level, fields } = await nextLine()
    expect(level).toBe("info")
    expect(fields).toMatchObject({
      ...whose,
      method: "POST",
      route: "/v1/echo",
      status: 200,
      input_tokens: 0,
      output_tokens: 1,
      cost_idr: 1,
      call_id: expect.any(String),
    })
    expect(Object.keys(fields.stages_ms as object)).toEqual([
      "auth",
      "body",
      "plan",
      "limits",
      "hold",
      "settle",
    ])
    expect(JSON.stringify(fixture.log.lines)).not.toContain(goodKey)
  })

  it("of a stream when it has ended, with its final values", async () => {
    await open(streaming(Stream.make({ n: 1 }, { n: 2 }, { n: 3 })))
    await (await post(`${fixture.url}/v1/stream`, "{}")).text()
    const { fields } = await nextLine()
    expect(fields).toMatchObject({ ...whose, status: 200, output_tokens: 3, cost_idr: 3 })
    expect(fields.stages_ms).toHaveProperty("settle")
    expect(finishedLines()).toHaveLength(1)
  })

  it("of a stream whose client left, with what was produced until then", async () => {
    const events = Stream.concat(Stream.make({ n: 1 }), Stream.never)
    fixture = await openHttpFixture({
      endpoints: [streaming(events)],
      timings: { halfClosedCheckMs: 1 },
    })
    const abort = new AbortController()
    const reply = await post(`${fixture.url}/v1/stream`, "{}", authorized, {
      signal: abort.signal,
    })
    await reply.body!.getReader().read()
    abort.abort()
    const { fields } = await nextLine()
    expect(fields).toMatchObject({
      ...whose,
      status: 200,
      cut: true,
      output_tokens: 1,
      cost_idr: 1,
    })
    expect(await fixture.metrics.expose()).toContain(
      'rakit_request_failure_total{endpoint="stream",model_name="",code="client_closed"} 1',
    )
  })

  it("of a refusal, with its code and the model that it named", async () => {
    await open(failing)
    await (await post(`${fixture.url}/v1/fails`, '{"model":"m"}')).json()
    const { fields } = await nextLine()
    expect(fields).toMatchObject({ ...whose, status: 429, code: "backend_busy", cost_idr: 0 })
  })
})

it("counts refusals by model and code, and no model that a client made up", async () => {
  await open(failing)
  for (const model of ["m", "m", "made-up"])
    await (await post(`${fixture.url}/v1/fails`, JSON.stringify({ model }))).json()
  await vi.waitFor(() => expect(finishedLines()).toHaveLength(3))
  const lines = (await fixture.metrics.expose())
    .split("\n")
    .filter((line) => line.startsWith("rakit_request_failure_total{"))
  expect(lines).toEqual([
    'rakit_request_failure_total{endpoint="fails",model_name="m",code="backend_busy"} 2',
    'rakit_request_failure_total{endpoint="fails",model_name="",code="backend_busy"} 1',
  ])
})

it("logs pages, their files and the API's description as debug", async () => {
  await open(page)
  for (const path of ["/page", "/openapi.json", "/healthz"])
    await (await fetch(fixture.url + path)).text()
  await vi.waitFor(() => expect(finishedLines()).toHaveLength(3))
  expect(finishedLines().map(({ level }) => level)).toEqual(["debug", "debug", "debug"])
})
