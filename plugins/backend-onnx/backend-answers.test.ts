import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv } from "ajv"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { ChatEvent, ChatRequest, LoadedModel } from "../../core/ports/model.ts"
import { runs } from "../../testing/property.ts"
import { llamaTemplate, thinkingTemplate } from "./testing/chat-templates.ts"
import { writeGguf } from "./testing/gguf-writer.ts"
import { answer, chatRequest, context, failureOf, openBackend } from "./testing/open-backend.ts"
import { tinyLlama } from "./testing/tiny-llama.ts"

/** Random weights write nonsense: what is well-formed in it is due to the grammar. */
const fixture = openBackend({ slots: 4, queue: 64 })
const models: Record<string, LoadedModel<"chat">> = {}

beforeAll(async () => {
  const content = tinyLlama(8)
  for (const [name, template] of Object.entries({
    plain: undefined,
    thinking: thinkingTemplate,
    llama: llamaTemplate,
  })) {
    const path = join(fixture.dataDir, `${name}.gguf`)
    writeFileSync(
      path,
      writeGguf({
        ...content,
        metadata: {
          ...content.metadata,
          "llama.context_length": 4096,
          ...(template && { "tokenizer.chat_template": template }),
        },
      }),
    )
    models[name] = await fixture.open("chat", path, { options: { queueWaitMs: 60_000 } })
  }
}, 60_000)
afterAll(() => fixture.close())

const ajv = new Ajv({ strict: false })
const parameters = {
  type: "object",
  properties: { kind: { enum: ["a", "b"] }, on: { type: "boolean" } },
  required: ["kind", "on"],
  additionalProperties: false,
}
const tools = [
  { name: "first", description: "<|im_end|>", parameters },
  {
    name: "second",
    parameters: { ...parameters, properties: { ...parameters.properties, kind: { const: "c" } } },
    strict: true,
  },
]
const hot = (more: Partial<ChatRequest>, seed?: number): ChatRequest =>
  chatRequest("the", {
    maxTokens: 1_000,
    sampling: {
      temperature: 1,
      topP: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
      ...(seed !== undefined && { seed }),
    },
    ...more,
  })

const read = (events: readonly ChatEvent[]) => {
  const calls: { id: string; name: string; arguments: string }[] = []
  let reasoning = ""
  for (const event of events) {
    if (event.type === "reasoning") reasoning += event.text
    if (event.type !== "toolCall") continue
    if (event.name !== undefined) calls.push({ id: event.id!, name: event.name, arguments: "" })
    calls[event.index]!.arguments += event.argumentsDelta
  }
  return { calls, reasoning }
}
const expectValid = (calls: readonly { name: string; arguments: string }[]) => {
  for (const { name, arguments: text } of calls)
    expect([
      text,
      ajv.validate(tools.find((tool) => tool.name === name)!.parameters, JSON.parse(text)),
    ]).toEqual([text, true])
}
const many = (name: string, request: Partial<ChatRequest>) =>
  Promise.all(
    Array.from({ length: runs(12) }, (_, seed) => answer(models[name]!, hot(request, seed))),
  )

describe.each(["plain", "thinking", "llama"])("%s", (name) => {
  test("required and named calls are calls, and their arguments validate", async () => {
    for (const { events, text, finish } of await many(name, {
      tools,
      toolChoice: "required",
      parallelToolCalls: false,
    })) {
      const { calls } = read(events)
      expect([calls.length, text, finish]).toEqual([1, "", "tool_calls"])
      expect(calls[0]!.id).toMatch(/^call_\w{24}$/)
      expectValid(calls)
    }
    for (const { events, text, finish } of await many(name, {
      tools,
      toolChoice: { name: "second" },
    })) {
      const { calls } = read(events)
      expect([calls.map((call) => call.name), text, finish]).toEqual([["second"], "", "tool_calls"])
      expectValid(calls)
    }
  }, 60_000)

  test("only allowed tools are called", async () => {
    for (const toolChoice of ["required", "auto"] as const)
      for (const { events, finish } of await many(name, {
        tools,
        toolChoice,
        allowedTools: ["second"],
        maxTokens: toolChoice === "auto" ? 60 : 1_000,
      })) {
        const { calls } = read(events)
        if (toolChoice === "required")
          expect([calls.length > 0, finish]).toEqual([true, "tool_calls"])
        if (finish === "tool_calls") expectValid(calls)
        expect(calls.filter((call) => call.name !== "second")).toEqual([])
      }
  }, 60_000)

  test("an answer is one of several texts, or matches a pattern", async () => {
    const choices = ["yes", "no", 'say "a/b" \\ or\nso']
    for (const { text, finish } of await many(name, {
      responseFormat: { type: "choice", choices },
    }))
      expect([finish, choices.includes(text)]).toEqual(["stop", true])
    for (const pattern of ["[a-c]{2}/\\d{3}|x\\/y", "^(?:ab|cd)\\n?$"])
      for (const { text, finish } of await many(name, {
        responseFormat: { type: "regex", pattern },
      }))
        expect([finish, text]).toEqual(["stop", expect.stringMatching(`^(?:${pattern})$`)])
    const lark = 'start: "sum: " sum\nsum: N ("+" N)*\nN: /[1-9]/'
    for (const { text, finish } of await many(name, { responseFormat: { type: "grammar", lark } }))
      expect([finish, text]).toEqual(["stop", expect.stringMatching(/^sum: [1-9](\+[1-9])*$/)])
  }, 60_000)

  test("auto is text or calls, a document validates, and calls or a document are one or the other", async () => {
    for (const { events, finish } of await many(name, { tools, maxTokens: 40 }))
      if (finish === "tool_calls") expectValid(read(events).calls)
    const schema = {
      type: "object",
      properties: { ok: { type: "boolean" } },
      required: ["ok"],
      additionalProperties: false,
    }
    const responseFormat = { type: "json_schema", schema, strict: true } as const
    for (const { text, finish } of await many(name, { responseFormat }))
      expect([finish, ajv.validate(schema, JSON.parse(text))]).toEqual(["stop", true])
    for (const { events, text, finish } of await many(name, {
      responseFormat,
      tools,
      parallelToolCalls: false,
    })) {
      const { calls } = read(events)
      expect(finish).toBe(calls.length ? "tool_calls" : "stop")
      if (calls.length) expectValid(calls)
      else expect(ajv.validate(schema, JSON.parse(text))).toBe(true)
    }
  }, 60_000)
})

test("reasoning is separated, counted, and comes before the constrained text", async () => {
  // random weights never close it by themselves, so the budget ends it
  const schema = {
    type: "object",
    properties: { ok: { type: "boolean" } },
    required: ["ok"],
    additionalProperties: false,
  }
  const request = {
    thinking: true,
    responseFormat: { type: "json_schema", schema, strict: true, closeOnLength: true },
    maxTokens: 60,
  } as const
  const { events, text, finish, usage } = await answer(models.thinking!, hot(request, 3))
  const { reasoning } = read(events)
  expect([finish, ajv.validate(schema, JSON.parse(text))]).toEqual(["length", true])
  expect(reasoning.length).toBeGreaterThan(0)
  expect(usage.reasoningTokens).toBeGreaterThan(20)
  expect(usage.reasoningTokens).toBeLessThan(usage.outputTokens)
  const off = await answer(models.thinking!, hot({ responseFormat: request.responseFormat }, 3))
  expect([read(off.events).reasoning, off.usage.reasoningTokens]).toEqual(["", 0])
  const knowsNone = await answer(models.plain!, hot({ thinking: true, maxTokens: 10 }, 3))
  expect([read(knowsNone.events).reasoning, knowsNone.usage.reasoningTokens]).toEqual(["", 0])
})

test("stop strings cut what is visible, not the reasoning", async () => {
  const { events, finish } = await answer(
    models.thinking!,
    hot({ thinking: true, stop: ["e", "\n", " "], maxTokens: 60 }, 3),
  )
  expect([finish, read(events).reasoning.length > 30]).toEqual(["length", true])
  expect(
    (await answer(models.thinking!, hot({ stop: ["e", "\n", " "], maxTokens: 400 }, 3))).finish,
  ).toBe("stop")
})

test("results of calls are read again", async () => {
  const text = (content: string) => [{ type: "text", text: content }] as const
  const messages: ChatRequest["messages"] = [
    { role: "user", content: text("a") },
    {
      role: "assistant",
      content: [],
      toolCalls: [{ id: "call_1", name: "first", arguments: '{"kind":"a","on":true}' }],
    },
    { role: "tool", content: text("done"), toolCallId: "call_1" },
  ]
  for (const name of Object.keys(models))
    expect((await answer(models[name]!, hot({ messages, tools, maxTokens: 5 }))).finish).toMatch(
      /stop|length|tool_calls/,
    )
})

describe("before any token, 400 names", () => {
  const refusedFor = (more: Partial<ChatRequest>) =>
    failureOf(models.plain!.task.plan(hot(more), context()))
  const elsewhere = {
    type: "object",
    properties: { a: { type: "array", items: { $ref: "https://example.com/a" } } },
  }
  test("the keyword of a strict schema that can't be kept", async () => {
    expect(
      await refusedFor({
        responseFormat: { type: "json_schema", schema: elsewhere, strict: true },
      }),
    ).toMatchObject({
      param: "response_format.json_schema.schema",
      message: expect.stringContaining('"$ref" at /properties/a/items/$ref'),
    })
    expect(
      await refusedFor({ tools: [tools[0]!, { name: "f", parameters: elsewhere, strict: true }] }),
    ).toMatchObject({
      param: "tools[1].function.parameters",
      message: expect.stringContaining('"$ref"'),
    })
  })
  test("what is no schema of arguments, also of tools that are not called", async () => {
    for (const parameters of [{ type: "string" }, { type: "object", properties: 3 }, false])
      expect(
        await refusedFor({ tools: [{ name: "f", parameters }], toolChoice: "none" }),
      ).toMatchObject({ code: "invalid_request_error", param: "tools[0].function.parameters" })
  })
  test("a tool that is not there", async () => {
    expect(await refusedFor({ tools, toolChoice: { name: "third" } })).toMatchObject({
      code: "invalid_request_error",
      param: "tool_choice",
    })
  })
  test("a pattern that can't be kept, or that is beside tools", async () => {
    const form = (pattern: string): Partial<ChatRequest> => ({
      responseFormat: { type: "regex", pattern, param: "guided_regex" },
    })
    for (const pattern of ["(?=a)b", "(a)\\1", "(", "a\\", "a)|(?:b"])
      expect([pattern, await refusedFor(form(pattern))]).toMatchObject([
        pattern,
        { code: expect.stringMatching(/unsupported_parameter|invalid/), param: "guided_regex" },
      ])
    const beside = await refusedFor({ ...form("a"), tools })
    expect(beside).toMatchObject({ code: "unsupported_parameter", param: "guided_regex" })
  })
  test("what is too large", async () => {
    expect(
      await refusedFor({ tools: [{ name: "f", description: "x".repeat(600_000) }] }),
    ).toMatchObject({
      code: expect.stringMatching(/invalid_request_error|context_length_exceeded/),
    })
  })
  test("nothing, where the schema is not strict: it guides as far as it goes", async () => {
    const { events } = await answer(
      models.plain!,
      hot(
        {
          tools: [
            {
              name: "f",
              parameters: { ...elsewhere, required: ["a"], additionalProperties: false },
            },
          ],
          toolChoice: { name: "f" },
          maxTokens: 300,
        },
        1,
      ),
    )
    expect(read(events).calls[0]!.arguments).toMatch(/^\{\s*"a"\s*:\s*\[/)
  })
})
