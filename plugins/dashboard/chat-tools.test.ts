import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { exampleTools, isSaid, openCalls, prettyArguments, saidBefore, toolsOf, withCallDeltas } =
  await webModule("chat-tools.js")
const { requestOf, snippets } = await webModule("chat-request.js")
const { makeTalks } = await webModule("talks.js")

describe("the tools of a text", () => {
  const named = (name: unknown) => ({ type: "function", function: { name } })

  it("are those of the example, and none for an empty one", () => {
    expect(toolsOf(exampleTools)[0].function.name).toBe("get_weather")
    expect(toolsOf(" \n")).toEqual([])
    expect(toolsOf("[]")).toEqual([])
    expect(toolsOf(undefined)).toEqual([])
  })

  it.each([
    ["{", "tools_not_json"],
    ["{}", "tools_not_list"],
    ["null", "tools_not_list"],
    ["[null]", "tools_shape"],
    ['[{"type":"function"}]', "tools_shape"],
    ['[{"type":"function","function":["name"]}]', "tools_shape"],
    ['[{"type":"function","function":{"name":"f","parameters":[]}}]', "tools_shape"],
    [JSON.stringify([{ ...named("f"), type: "tool" }]), "tools_shape"],
    [JSON.stringify([named(1)]), "tools_shape"],
    [JSON.stringify([named("")]), "tools_name"],
    [JSON.stringify([named("two words")]), "tools_name"],
    [JSON.stringify([named("f"), named("f")]), "tools_twice"],
  ])("are refused in %s by %s", (text, code) => {
    expect(() => toolsOf(text)).toThrow(expect.objectContaining({ code, param: "tools" }))
  })
})

describe("calls in pieces", () => {
  const pieces = [
    { index: 1, id: "b", type: "function", function: { name: "second", arguments: "" } },
    { index: 0, id: "a", type: "function", function: { name: "first", arguments: '{"x"' } },
    { index: 1, function: { arguments: "{}" } },
    { index: 0, function: { arguments: ":1}" } },
  ]
  const whole = [
    { index: 0, id: "a", name: "first", arguments: '{"x":1}' },
    { index: 1, id: "b", name: "second", arguments: "{}" },
  ]

  it("are put together by index, however they are spread over chunks", () => {
    const oneByOne = pieces.reduce((calls, piece) => withCallDeltas(calls, [piece]), [])
    expect(oneByOne).toEqual(whole)
    expect(withCallDeltas([], pieces)).toEqual(whole)
  })

  it("leave calls as they are in chunks without any, and never change what is shown", () => {
    const shown = Object.freeze([Object.freeze({ ...whole[0] })])
    expect(withCallDeltas(shown, undefined)).toEqual([whole[0]])
    expect(withCallDeltas(shown, [{ index: 0, function: { arguments: "!" } }])[0].arguments).toBe(
      '{"x":1}!',
    )
    expect(shown[0]!.arguments).toBe('{"x":1}')
  })

  it("show arguments as they are until they are JSON", () => {
    expect(prettyArguments('{"x":')).toBe('{"x":')
    expect(prettyArguments('{"x":1}')).toBe('{\n  "x": 1\n}')
  })
})

describe("a conversation with calls", () => {
  const toolCalls = [{ index: 0, id: "a", name: "get_weather", arguments: '{"city":"Bogor"}' }]
  const messages = [
    { role: "user", content: "weather?" },
    { role: "assistant", content: "", toolCalls, finish: "tool_calls" },
    { role: "tool", toolCallId: "a", name: "get_weather", content: "" },
  ]
  const settings = { model: "m", tools: exampleTools, toolChoice: "required" }

  it("is sent as the API has it, an empty result, too", () => {
    expect(messages.every(isSaid)).toBe(true)
    expect(requestOf(settings, messages).messages).toEqual([
      { role: "user", content: "weather?" },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "a",
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Bogor"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "a", content: "" },
    ])
  })

  it("requires a call for a question, not behind results", () => {
    const choice = (count: number) =>
      requestOf(settings, messages.slice(0, count)).tool_choice as string
    expect([choice(1), choice(3)]).toEqual(["required", "auto"])
    expect(requestOf({ ...settings, toolChoice: "none" }, messages).tool_choice).toBe("none")
    expect(requestOf({ ...settings, tools: "" }, messages)).not.toHaveProperty("tool_choice")
    expect(() => requestOf({ ...settings, tools: "{" }, messages)).toThrow(
      expect.objectContaining({ param: "tools" }),
    )
  })

  it("waits for results of the last message's calls, unless that was refused", () => {
    expect(openCalls(messages.slice(0, 2))).toEqual(toolCalls)
    expect(openCalls(messages)).toEqual([])
    expect(openCalls([])).toEqual([])
    expect(openCalls([{ role: "assistant", content: "", toolCalls, problem: {} }])).toEqual([])
  })

  it("goes on without a question that was refused for what is in it", () => {
    const question = { role: "user", content: "What is this?" }
    const saidAfter = (problem: object) =>
      saidBefore([...messages, question, { role: "assistant", content: "", problem }])
    expect(saidAfter({ status: 400, param: "messages[0].content[0].image_url.url" })).toEqual(
      messages,
    )
    expect(saidAfter({ status: 413 })).toEqual(messages)
    expect(saidAfter({ status: 503 })).toEqual([...messages, question])
    expect(saidAfter({ status: 400, param: "tools[0]" })).toEqual([...messages, question])
  })

  it("is code that prints the message, with tools and results", () => {
    const python = snippets.Python("http://x/v1", requestOf(settings, messages))
    expect(python).toContain('"tool_call_id": "a",')
    expect(python).toContain('"name": "get_weather",')
    expect(python).toMatch(/print\(reply\.choices\[0\]\.message\)$/)
  })

  it("is kept with its calls; results whose calls fell off are not", () => {
    let kept: unknown
    const talks = makeTalks({
      persisted: {
        read: () => kept,
        write: (value: unknown) => {
          kept = value
        },
      },
      makeId: () => "x",
    })
    talks.keep("short", messages)
    expect(talks.all()[0].messages).toEqual(messages)
    const more = Array.from({ length: 199 }, () => ({ role: "user", content: "more" }))
    talks.keep("long", [...messages, ...more])
    expect(talks.all()[0].messages).toEqual(more)
  })
})
