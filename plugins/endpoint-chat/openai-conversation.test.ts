import type OpenAI from "openai"
import { afterEach, describe, expect, it } from "vitest"
import {
  type ClientFixture,
  type Messages,
  openClient,
  tools,
  user,
  weatherTool,
} from "./testing/open-client.ts"

let fixture: ClientFixture
const open = async (...script: Parameters<typeof openClient>) => {
  fixture = await openClient(...script)
  return fixture.client
}
afterEach(() => fixture.deps.close())

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
    expect(fixture.model.runs.map(({ request }) => request)).toMatchObject([
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
    expect(Object.keys(fixture.model.runs[1]!.request)).not.toContain("thinking")
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
      tools: [...tools, weatherTool("get_time", { strict: true })],
      ...(tool_choice && { tool_choice }),
    })
    expect(
      choices[0]?.message.tool_calls?.map((one) => one.type === "function" && one.function.name) ??
        [],
    ).toEqual(names)
    expect(choices[0]?.finish_reason).toBe(names.length > 0 ? "tool_calls" : "stop")
    expect(fixture.model.runs[0]?.request).toMatchObject({
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
    expect(fixture.model.runs[0]?.request.parallelToolCalls).toBe(false)
  })
})
