import { Stream } from "effect"
import OpenAI, { APIError } from "openai"
import { afterEach, expect, test } from "vitest"
import { type ApiError, apiError } from "../../core/errors.ts"
import { goodKey, type HttpFixture, openHttpFixture, streaming } from "./testing/fixture.ts"
import { until } from "./testing/raw.ts"

let fixture: HttpFixture
afterEach(() => fixture.close())

const chunk = (content: string) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta: { content }, finish_reason: null }],
})
const open = async (events: Stream.Stream<unknown, ApiError>) => {
  fixture = await openHttpFixture({
    endpoints: [streaming(events, "/v1/chat/completions")],
    timings: { pingMs: 10 },
  })
  return new OpenAI({ baseURL: `${fixture.url}/v1`, apiKey: goodKey, maxRetries: 0 })
}
const ask = (client: OpenAI) =>
  client.chat.completions.create({
    model: "m",
    stream: true,
    messages: [{ role: "user", content: "hi" }],
  })

test("reads a stream with pings and a trailer to its end", async () => {
  const client = await open(
    Stream.tick(15).pipe(
      Stream.take(5),
      Stream.zipWithIndex,
      Stream.map(([, i]) => chunk(String(i))),
    ),
  )
  let text = ""
  for await (const part of await ask(client)) text += part.choices[0]?.delta.content ?? ""
  expect(text).toBe("01234")
  // the connection can serve another request
  expect((await client.models.list().catch((error: APIError) => error.status)) as unknown).toBe(404)
})

test("throws on an error in the middle, after what came before it", async () => {
  const client = await open(
    Stream.concat(Stream.make(chunk("a")), Stream.fail(apiError("backend_error"))),
  )
  const seen: string[] = []
  const reading = (async () => {
    for await (const part of await ask(client)) seen.push(part.choices[0]?.delta.content ?? "")
  })()
  const error = await reading.catch((e: unknown) => e)
  expect(error).toBeInstanceOf(APIError)
  expect(error).toMatchObject({ code: "backend_error", type: "server_error" })
  expect(seen).toEqual(["a"])
})

test("sees the status, code and request id of an early error", async () => {
  const client = await open(
    Stream.fail(apiError("context_length_exceeded", undefined, { param: "messages" })),
  )
  const error = await ask(client).catch((e: unknown) => e)
  expect(error).toMatchObject({
    status: 400,
    code: "context_length_exceeded",
    param: "messages",
    requestID: expect.stringMatching(/^req_/),
  })
})

test("its abort stops the source", async () => {
  const client = await open(Stream.tick(5).pipe(Stream.map(() => chunk("x"))))
  const stream = await ask(client)
  for await (const _ of stream) break
  await until(() => fixture.settlements.length === 1 && fixture.server.inFlight === 0)
  expect(fixture.settlements).toMatchObject([{ outcome: "settled", httpStatus: 499 }])
})
