import type OpenAI from "openai"
import { afterEach, describe, expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import type { ChatEvent } from "../../core/ports/model.ts"
import { type ClientFixture, openClient, tools, user, weatherTool } from "./testing/open-client.ts"

let fixture: ClientFixture
const open = async (...script: Parameters<typeof openClient>) => {
  fixture = await openClient(...script)
  return fixture.client
}
afterEach(() => fixture.deps.close())

const call = (
  index: number,
  argumentsDelta: string,
  more: { id?: string; name?: string } = {},
): ChatEvent => ({ type: "toolCall", index, argumentsDelta, ...more })

/**
 * Irregular deltas: id and name apart, arguments before the name, spaces alone, empty deltas, two
 * calls.
 */
const odd: readonly ChatEvent[] = [
  { type: "reasoning", text: "" },
  { type: "reasoning", text: "Let me" },
  { type: "reasoning", text: " look." },
  call(0, "", { id: "call_a" }),
  call(0, " "),
  call(0, "", { name: "get_weather" }),
  call(0, " \n"),
  call(0, ""),
  call(0, '{"ci'),
  call(0, 'ty": "\\u'),
  call(0, '00e9 \\"'),
  call(0, '"}'),
  call(1, '{"city":"Bandung"}', { name: "get_weather" }),
]
const first = '  \n{"city": "\\u00e9 \\""}'

describe("calls", () => {
  it("come whole", async () => {
    const client = await open({ first: odd, says: [] })
    const { choices, usage } = await client.chat.completions.create({
      model: "svc-lyt",
      messages: user,
      tools,
      parallel_tool_calls: true,
    })
    const [choice] = choices
    expect(choice).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        role: "assistant",
        content: null,
        reasoning_content: "Let me look.",
        tool_calls: [
          { id: "call_a", type: "function", function: { name: "get_weather", arguments: first } },
          {
            id: expect.stringMatching(/^call_./),
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Bandung"}' },
          },
        ],
      },
    })
    expect(usage).toMatchObject({
      prompt_tokens: 7,
      completion_tokens: odd.length,
      completion_tokens_details: { reasoning_tokens: 3 },
    })
  })

  it("come as deltas: id, type and name first, then arguments", async () => {
    const client = await open({ first: odd, says: [], ends: "tool_calls" })
    const stream = await client.chat.completions.create({
      model: "svc-lyt",
      messages: user,
      tools,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of stream) chunks.push(chunk)
    const made = expect.stringMatching(/^call_./)
    const args = (index: number, text: string) => ({
      tool_calls: [{ index, function: { arguments: text } }],
    })
    expect(
      chunks.flatMap(({ choices }) =>
        choices.map(({ delta, finish_reason }) => (finish_reason ? [delta, finish_reason] : delta)),
      ),
    ).toEqual([
      { role: "assistant", content: "" },
      { reasoning_content: "Let me" },
      { reasoning_content: " look." },
      {
        tool_calls: [
          {
            index: 0,
            id: "call_a",
            type: "function",
            function: { name: "get_weather", arguments: "" },
          },
        ],
      },
      args(0, '  \n{"ci'),
      args(0, 'ty": "\\u'),
      args(0, '00e9 \\"'),
      args(0, '"}'),
      {
        tool_calls: [
          {
            index: 1,
            id: made,
            type: "function",
            function: { name: "get_weather", arguments: "" },
          },
        ],
      },
      args(1, '{"city":"Bandung"}'),
      [{}, "tool_calls"],
    ])
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { completion_tokens: odd.length, completion_tokens_details: { reasoning_tokens: 3 } },
    })
  })

  it("are parsed on the way by the client's own stream helper", async () => {
    const client = await open({ first: odd, says: [] })
    const stream = client.chat.completions.stream({
      model: "svc-lyt",
      messages: user,
      tools: [weatherTool("get_weather", { strict: true })],
    })
    const done: unknown[] = []
    stream.on("tool_calls.function.arguments.done", ({ index, name, parsed_arguments }) =>
      done.push([index, name, parsed_arguments]),
    )
    const [one, two] = (await stream.finalChatCompletion()).choices[0]?.message.tool_calls ?? []
    expect(done).toEqual([
      [0, "get_weather", { city: 'é "' }],
      [1, "get_weather", { city: "Bandung" }],
    ])
    expect([one?.id, one?.function.arguments, two?.function.parsed_arguments]).toEqual([
      "call_a",
      first,
      { city: "Bandung" },
    ])
  })

  it("that the budget cuts end with length, and one without a name is none", async () => {
    const client = await open({ first: odd, says: [] })
    const ask = async (max_tokens: number) =>
      (
        await client.chat.completions.create({
          model: "svc-lyt",
          messages: user,
          tools,
          max_tokens,
        })
      ).choices[0]
    expect(await ask(10)).toMatchObject({
      finish_reason: "length",
      message: { content: null, tool_calls: [{ function: { arguments: '  \n{"city": "\\u' } }] },
    })
    const early = await ask(4)
    expect([early?.finish_reason, early?.message.content, early?.message.tool_calls]).toEqual([
      "length",
      "",
      undefined,
    ])
  })

  it("stand beside text and its log-probabilities", async () => {
    const plain = { token: "Hm", bytes: [72, 109], logprob: -0.5 }
    const events: ChatEvent[] = [
      { type: "reasoning", text: "So" },
      { type: "text", text: "Hm", logprobs: [{ ...plain, top: [plain] }] },
      call(0, "{}", { name: "get_weather" }),
    ]
    const client = await open({ first: events, says: [], ends: "tool_calls" })
    const ask = { model: "svc-lyt", messages: user, tools, logprobs: true, top_logprobs: 1 }
    const expected = [
      {
        finish_reason: "tool_calls",
        message: { content: "Hm", tool_calls: [{ function: { arguments: "{}" } }] },
        logprobs: { content: [{ ...plain, top_logprobs: [plain] }] },
      },
    ]
    expect((await client.chat.completions.create(ask)).choices).toMatchObject(expected)
    expect((await client.chat.completions.stream(ask).finalChatCompletion()).choices).toMatchObject(
      expected,
    )
  })
})

it("what the model's plan refuses is 400 with the plan's param, before any token, streamed or not", async () => {
  const refuse = apiError(
    "invalid_request_error",
    "tools[0].function.parameters: 'patternProperties' can't be kept",
    { param: "tools[0].function.parameters" },
  )
  const client = await open({ refuse })
  for (const stream of [false, true])
    await expect(
      client.chat.completions.create({ model: "svc-lyt", messages: user, tools, stream }),
    ).rejects.toMatchObject({
      status: 400,
      code: "invalid_request_error",
      param: "tools[0].function.parameters",
      message: expect.stringContaining("'patternProperties' can't be kept"),
    })
  expect([fixture.model.runs, fixture.deps.settlements]).toEqual([[], []])
})
