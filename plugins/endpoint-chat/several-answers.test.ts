import { Effect } from "effect"
import type OpenAI from "openai"
import { afterEach, expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import { type ClientFixture, openClient, tools, user } from "./testing/open-client.ts"

let fixture: ClientFixture
const open = async (...script: Parameters<typeof openClient>) => {
  fixture = await openClient(...script)
  return fixture.client
}
afterEach(() => fixture.deps.close())

const body = { model: "svc-lyt", messages: user, n: 3 }

it("several answers come whole, each at its index, and the prompt is counted once", async () => {
  const client = await open({ says: ["It", " rains."] })
  const { choices, usage } = await client.chat.completions.create(body)
  expect(choices).toMatchObject(
    [0, 1, 2].map((index) => ({
      index,
      message: { role: "assistant", content: "It rains." },
      finish_reason: "stop",
    })),
  )
  expect(usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 6, total_tokens: 13 })
  expect(fixture.model.runs).toHaveLength(1)
  expect(fixture.deps.settlements).toMatchObject([
    { outcome: "settled", usage: { "svc-lyt": { inputTokens: 7, outputTokens: 6 } } },
  ])
})

it("each has calls of its own", async () => {
  const client = await open()
  const { choices } = await client.chat.completions.create({ ...body, tools, n: 2 })
  for (const { message, finish_reason } of choices)
    expect([message.tool_calls?.length, finish_reason]).toEqual([1, "tool_calls"])
})

it("streamed, the chunks of all are interleaved; each has one role and one finish, the usage comes once", async () => {
  const client = await open({ first: [{ type: "reasoning", text: "hm" }], says: ["It", " rains."] })
  const stream = await client.chat.completions.create({
    ...body,
    stream: true,
    stream_options: { include_usage: true },
  })
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  for (const index of [0, 1, 2]) {
    const own = chunks.flatMap(({ choices }) => choices.filter((one) => one.index === index))
    expect(own[0]?.delta).toEqual({ role: "assistant", content: "" })
    expect(own.filter(({ delta }) => delta.role)).toHaveLength(1)
    expect(own.map(({ delta }) => delta.content ?? "").join("")).toBe("It rains.")
    expect(own.filter(({ finish_reason }) => finish_reason)).toEqual([own.at(-1)])
  }
  const indices = chunks.flatMap(({ choices }) => choices.map(({ index }) => index))
  expect(indices.indexOf(2)).toBeLessThan(indices.lastIndexOf(0))
  expect(chunks.filter(({ usage }) => usage)).toEqual([chunks.at(-1)])
  expect(chunks.at(-1)).toMatchObject({
    choices: [],
    usage: { completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 3 } },
  })
})

it("the official accumulator puts them together", async () => {
  const client = await open({ says: ["It", " rains."] })
  const { choices } = await client.chat.completions.stream(body).finalChatCompletion()
  expect(choices.map(({ message }) => message.content)).toEqual(new Array(3).fill("It rains."))
})

it("a call with an answer that fails costs nothing", async () => {
  const client = await open({
    says: ["It", " rains."],
    before: (step) => (step === 5 ? Effect.fail(apiError("backend_error")) : Effect.void),
  })
  await expect(client.chat.completions.create(body)).rejects.toMatchObject({
    code: "backend_error",
  })
  expect(fixture.deps.settlements).toMatchObject([{ outcome: "voided", costMicros: 0n }])
})
