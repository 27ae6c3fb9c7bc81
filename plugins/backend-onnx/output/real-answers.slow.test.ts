import { Ajv } from "ajv"
import { afterAll, describe, expect, test } from "vitest"
import type { ChatEvent, ChatRequest, LoadedModel } from "../../../core/ports/model.ts"
import { answer, chatRequest, openBackend } from "../testing/open-backend.ts"

/**
 * SmolLM2 with 135 million parameters, whose template has no tools: what it writes is often
 * nonsense, but never malformed.
 */
const chatPath = process.env.RAKIT_TEST_CHAT_MODEL
const fixture = openBackend({ slots: 4, threads: 2 })
afterAll(() => fixture.close())

let opened: Promise<LoadedModel<"chat">> | undefined
const model = () => {
  opened ??= fixture.open("chat", chatPath!, {
    contextTokens: 4096,
    options: { queueWaitMs: 600_000 },
  })
  return opened
}

const ajv = new Ajv({ strict: false })
const weather = {
  name: "get_weather",
  description: "Tells the weather of a city",
  parameters: {
    type: "object",
    properties: {
      city: { type: "string", maxLength: 20 },
      unit: { enum: ["celsius", "fahrenheit"] },
      days: { type: "integer", minimum: 1, maximum: 10 },
    },
    required: ["city", "unit"],
    additionalProperties: false,
  },
}
const timer = {
  name: "set_timer",
  description: "Sets a timer",
  parameters: {
    type: "object",
    properties: {
      seconds: { type: "number", minimum: 0 },
      labels: {
        type: "array",
        items: { type: "string", maxLength: 12 },
        uniqueItems: true,
        minItems: 2,
        maxItems: 3,
      },
    },
    required: ["seconds", "labels"],
    additionalProperties: false,
  },
}
const tools = [weather, timer]

const ask = (more: Partial<ChatRequest>, seed?: number) =>
  chatRequest("What is the weather in Jakarta in celsius? Set a timer of ten seconds, too.", {
    maxTokens: 200,
    sampling: {
      temperature: seed === undefined ? 0 : 1,
      topP: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
      ...(seed !== undefined && { seed }),
    },
    ...more,
  })

interface Called {
  readonly name: string
  readonly arguments: string
}
const callsIn = (events: readonly ChatEvent[]): readonly Called[] => {
  const calls: { name: string; arguments: string }[] = []
  for (const event of events) {
    if (event.type !== "toolCall") continue
    if (event.name !== undefined) calls.push({ name: event.name, arguments: "" })
    calls[event.index]!.arguments += event.argumentsDelta
  }
  return calls
}
const expectValid = ({ name, arguments: text }: Called): void => {
  const validate = ajv.compile(tools.find((tool) => tool.name === name)!.parameters)
  expect([text, validate(JSON.parse(text)), validate.errors]).toEqual([text, true, null])
}
const seeds = [undefined, 8, 9, 10, 11, 12, 13, 14, 15]
const each = async <T>(check: (seed: number | undefined) => Promise<T>): Promise<readonly T[]> => {
  await model()
  return Promise.all(seeds.map(check))
}

describe.skipIf(!chatPath)("SmolLM2", () => {
  test("required: always calls, and their arguments validate", async () => {
    const counts = await each(async (seed) => {
      const { events, text, finish } = await answer(
        await model(),
        ask({ tools, toolChoice: "required" }, seed),
      )
      const calls = callsIn(events)
      if (finish === "tool_calls") for (const call of calls) expectValid(call)
      else expect(finish).toBe("length")
      expect(text).toBe("")
      return calls.length
    })
    expect(Math.min(...counts)).toBeGreaterThan(0)
  }, 300_000)

  test("named: one call of it, and its arguments validate", async () => {
    await each(async (seed) => {
      const { events, text, finish } = await answer(
        await model(),
        ask({ tools, toolChoice: { name: "set_timer" } }, seed),
      )
      const calls = callsIn(events)
      expect([calls.map(({ name }) => name), text, finish]).toEqual([
        ["set_timer"],
        "",
        "tool_calls",
      ])
      expectValid(calls[0]!)
    })
  }, 300_000)

  test("auto: text, calls that validate, or both; never half a call", async () => {
    const finishes = await each(async (seed) => {
      const { events, text, finish } = await answer(
        await model(),
        ask({ tools, parallelToolCalls: false }, seed),
      )
      const calls = callsIn(events)
      expect(calls.length).toBeLessThanOrEqual(1)
      if (finish !== "length") for (const call of calls) expectValid(call)
      expect(text).not.toContain("<tool_call>")
      expect(finish === "tool_calls").toBe(calls.length > 0 && finish !== "length")
      return finish
    })
    // the model must call now and then, or the test proves nothing
    expect(finishes).toContain("tool_calls")
  }, 300_000)

  test("none: text, though the conversation is full of calls", async () => {
    const messages: ChatRequest["messages"] = [
      { role: "user", content: [{ type: "text", text: "The weather in Bandung?" }] },
      {
        role: "assistant",
        content: [],
        toolCalls: [
          { id: "call_1", name: "get_weather", arguments: '{"city":"Bandung","unit":"celsius"}' },
        ],
      },
      {
        role: "tool",
        content: [{ type: "text", text: '{"temperature": 24}' }],
        toolCallId: "call_1",
      },
    ]
    await each(async (seed) => {
      const { events, text } = await answer(
        await model(),
        ask({ tools, toolChoice: "none", messages, maxTokens: 60 }, seed),
      )
      expect(callsIn(events)).toEqual([])
      expect(text).not.toContain("<tool_call>")
    })
  }, 300_000)

  test("json_schema: what ends with stop validates; json_object is an object", async () => {
    const schema = {
      type: "object",
      properties: {
        name: { type: "string", maxLength: 30 },
        age: { type: "integer", minimum: 0, maximum: 150 },
        tags: { type: "array", items: { enum: ["a", "b", "c"] }, maxItems: 4 },
      },
      required: ["name", "age", "tags"],
      additionalProperties: false,
    }
    const validate = ajv.compile(schema)
    const finishes = await each(async (seed) => {
      const { text, finish } = await answer(
        await model(),
        ask({ responseFormat: { type: "json_schema", schema, strict: true } }, seed),
      )
      if (finish === "stop") expect([text, validate(JSON.parse(text))]).toEqual([text, true])
      return finish
    })
    expect(finishes).toContain("stop")
    await each(async (seed) => {
      const { text, finish } = await answer(
        await model(),
        ask({ responseFormat: { type: "json_object" } }, seed),
      )
      if (finish === "stop") expect(JSON.parse(text)).toBeTypeOf("object")
    })
  }, 300_000)

  test("calls or a document", async () => {
    const schema = {
      type: "object",
      properties: { answer: { type: "string", maxLength: 40 } },
      required: ["answer"],
      additionalProperties: false,
    }
    const validate = ajv.compile(schema)
    await each(async (seed) => {
      const { events, text, finish } = await answer(
        await model(),
        ask({ tools, responseFormat: { type: "json_schema", schema, strict: true } }, seed),
      )
      if (finish === "stop") expect([text, validate(JSON.parse(text))]).toEqual([text, true])
      if (finish === "tool_calls") for (const call of callsIn(events)) expectValid(call)
    })
  }, 300_000)
})
