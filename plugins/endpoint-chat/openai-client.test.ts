import type OpenAI from "openai"
import { afterEach, describe, expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import type { ChatEvent } from "../../core/ports/model.ts"
import { type ClientFixture, openClient } from "./testing/open-client.ts"

let world: ClientFixture
const open = async (...script: Parameters<typeof openClient>) => {
  world = await openClient(...script)
  return world.client
}
afterEach(() => world.deps.close())

type Messages = OpenAI.ChatCompletionMessageParam[]
const user: Messages = [{ role: "user", content: "What is the weather in Jakarta?" }]
const tool = (name: string, more: object = {}): OpenAI.ChatCompletionFunctionTool => ({
  type: "function",
  function: {
    name,
    description: "Tells it.",
    parameters: {
      type: "object",
      required: ["city"],
      properties: { city: { type: "string" } },
      additionalProperties: false,
    },
    ...more,
  },
})
const tools = [tool("get_weather")]
const call = (
  index: number,
  argumentsDelta: string,
  more: { id?: string; name?: string } = {},
): ChatEvent => ({ type: "toolCall", index, argumentsDelta, ...more })

/** Id and name apart, arguments before the name, spaces alone, nothing at all, two calls. */
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
      tools: [tool("get_weather", { strict: true })],
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

describe("a conversation with tools", () => {
  it("comes back to the model as it was said, thoughts and exact arguments too", async () => {
    const client = await open()
    const { choices } = await client.chat.completions.create({
      model: "svc-lyt",
      messages: user,
      tools,
      chat_template_kwargs: { enable_thinking: true },
    } as OpenAI.ChatCompletionCreateParamsNonStreaming)
    const answer = choices[0]!.message
    expect(answer).toMatchObject({
      reasoning_content: "Let me think.",
      tool_calls: [{ function: { name: "get_weather", arguments: '{"city":"sample"}' } }],
    })
    const [asked] = answer.tool_calls!
    const messages: Messages = [
      ...user,
      answer,
      { role: "tool", tool_call_id: asked!.id, content: "31 degrees" },
    ]
    const last = await client.chat.completions.create({ model: "svc-lyt", messages, tools })
    expect(last.choices[0]).toMatchObject({
      finish_reason: "stop",
      message: { content: "31 degrees" },
    })
    expect(world.model.runs.map(({ request }) => request)).toMatchObject([
      {
        thinking: true,
        toolChoice: "auto",
        tools: [
          {
            name: "get_weather",
            description: "Tells it.",
            parameters: tools[0]!.function.parameters,
          },
        ],
      },
      {
        messages: [
          { role: "user" },
          {
            role: "assistant",
            content: [],
            reasoning: "Let me think.",
            toolCalls: [{ id: asked!.id, name: "get_weather", arguments: '{"city":"sample"}' }],
          },
          { role: "tool", toolCallId: asked!.id, content: [{ type: "text", text: "31 degrees" }] },
        ],
      },
    ])
    expect(Object.keys(world.model.runs[1]!.request)).not.toContain("thinking")
  })

  it.each([false, true])("runs by itself with the client's runTools, stream %s", async (stream) => {
    const client = await open()
    const cities: string[] = []
    const look = {
      type: "function",
      function: {
        ...tools[0]!.function,
        parse: JSON.parse,
        function: ({ city }: { city: string }) => {
          cities.push(city)
          return "sunny"
        },
      },
    } as const
    const asked = { model: "svc-lyt", messages: user, tools: [look] } as unknown as Parameters<
      typeof client.chat.completions.runTools
    >[0]
    const runner = client.chat.completions.runTools({ ...asked, stream } as typeof asked)
    expect([await runner.finalContent(), cities]).toEqual(["sunny", ["sample"]])
  })

  it.each<[OpenAI.ChatCompletionToolChoiceOption | undefined, unknown, readonly string[]]>([
    [undefined, "auto", ["get_weather", "get_time"]],
    ["auto", "auto", ["get_weather", "get_time"]],
    ["none", "none", []],
    ["required", "required", ["get_weather", "get_time"]],
    [{ type: "function", function: { name: "get_time" } }, { name: "get_time" }, ["get_time"]],
  ])("asks for calls by tool_choice %j", async (tool_choice, toolChoice, names) => {
    const client = await open()
    const { choices } = await client.chat.completions.create({
      model: "svc-lyt",
      messages: user,
      tools: [...tools, tool("get_time", { strict: true })],
      ...(tool_choice && { tool_choice }),
    })
    expect(
      choices[0]?.message.tool_calls?.map((one) => one.type === "function" && one.function.name) ??
        [],
    ).toEqual(names)
    expect(choices[0]?.finish_reason).toBe(names.length > 0 ? "tool_calls" : "stop")
    expect(world.model.runs[0]?.request).toMatchObject({
      toolChoice,
      tools: [{ name: "get_weather" }, { name: "get_time", strict: true }],
    })
  })

  it("can be held to one call at a time", async () => {
    const client = await open()
    await client.chat.completions.create({
      model: "svc-lyt",
      messages: user,
      tools,
      parallel_tool_calls: false,
    })
    expect(world.model.runs[0]?.request.parallelToolCalls).toBe(false)
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
  expect([world.model.runs, world.deps.settlements]).toEqual([[], []])
})
