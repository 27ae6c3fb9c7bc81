import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { ChatRequest, ResponseFormat } from "../../core/ports/model.ts"
import { chat, chatRequest, openRemote } from "./testing/open-remote.ts"
import {
  chunk,
  openScripted,
  type ScriptedUpstream,
  say,
  stream,
  usageOf,
} from "./testing/scripted-upstream.ts"

let upstream: ScriptedUpstream
let remote: ReturnType<typeof openRemote>
beforeAll(async () => {
  upstream = await openScripted()
})
afterEach(() => remote?.close())
afterAll(() => upstream.close())

const schema = {
  type: "object",
  properties: { age: { type: "integer", minimum: 0 }, mail: { type: "string", format: "email" } },
  required: ["age"],
  additionalProperties: false,
}
const formats = {
  json_object: { type: "json_object" },
  json_schema: { type: "json_schema", schema, strict: true },
  regex: { type: "regex", pattern: "[a-z]+" },
  grammar: { type: "grammar", lark: 'start: "a"' },
  choice: { type: "choice", choices: ["a.b", 'say "c"'] },
} as const satisfies Record<string, ResponseFormat>
type FormatName = keyof typeof formats

const answers: Readonly<Record<FormatName, string>> = {
  json_object: "{}",
  json_schema: '{"age":1}',
  regex: "abc",
  grammar: "a",
  choice: "a.b",
}

const saying = (text: string, finish = "stop") =>
  stream(say(text), chunk({}, finish), usageOf(5, 2), "[DONE]")

const asked = async (request: Partial<ChatRequest>, at: object = {}, options: object = {}) => {
  remote = openRemote()
  const upstreams = [{ url: upstream.url, model: "m", ...at }]
  const loaded = await remote.open("chat", { upstreams, ...options })
  return chat(loaded, chatRequest(request))
}

const inOpenAi = {
  json_object: { response_format: { type: "json_object" } },
  json_schema: {
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", schema, strict: true },
    },
  },
}
const structured = (form: object) => ({ structured_outputs: form })

/** What each kind is sent; null: it is refused by name, and nothing is sent. */
const sent: Readonly<Record<string, Readonly<Record<FormatName, object | null>>>> = {
  compatible: { ...inOpenAi, regex: null, grammar: null, choice: null },
  openai: { ...inOpenAi, regex: null, grammar: null, choice: null },
  vllm: {
    ...inOpenAi,
    regex: structured({ regex: "[a-z]+" }),
    grammar: null,
    choice: structured({ choice: formats.choice.choices }),
  },
  sglang: {
    ...inOpenAi,
    regex: { regex: "[a-z]+" },
    grammar: null,
    choice: { regex: 'a\\.b|say "c"' },
  },
  tgi: {
    json_object: null,
    json_schema: { response_format: { type: "json", value: schema } },
    regex: { response_format: { type: "regex", value: "[a-z]+" } },
    grammar: null,
    choice: null,
  },
  llamacpp: {
    ...inOpenAi,
    regex: null,
    grammar: null,
    choice: { grammar: 'root ::= "a.b" | "say \\"c\\""' },
  },
  ollama: { ...inOpenAi, regex: null, grammar: null, choice: null },
  rakit: {
    ...inOpenAi,
    regex: { response_format: { type: "regex", pattern: "[a-z]+" } },
    grammar: { response_format: { type: "grammar", grammar: 'start: "a"' } },
    choice: structured({ choice: formats.choice.choices }),
  },
}
const rows = Object.entries(sent).flatMap(([kind, forms]) =>
  Object.entries(forms).map(([format, form]) => [kind, format as FormatName, form] as const),
)

it.each(rows)("%s: %s is sent in its words, or refused by name", async (kind, format, form) => {
  upstream.play(saying(answers[format]))
  const { error, text } = await asked({ responseFormat: formats[format] }, { kind })
  if (form === null) {
    expect(error).toMatchObject({ code: "unsupported_parameter", param: "response_format" })
    expect(upstream.asked).toHaveLength(0)
  } else {
    expect([error, text]).toEqual([undefined, answers[format]])
    expect(upstream.asked[0]?.body).toMatchObject(form)
  }
})

it("a form that a kind has no field for can't be promised of it", async () => {
  await expect(asked({}, { kind: "ollama", keeps: ["regex"] })).rejects.toThrow(
    "servers of the kind ollama have no field for regex",
  )
  await expect(asked({}, { kind: "sglang", keeps: ["grammar"] })).rejects.toThrow("for grammar")
  upstream.play(saying("abc"))
  const { error } = await asked({ responseFormat: formats.regex }, { keeps: ["regex"] })
  expect(error).toBeUndefined()
  expect(upstream.asked[0]?.body).toMatchObject(structured({ regex: "[a-z]+" }))
})

it("a document that another Rakit closed is said to be whole, and checked", async () => {
  const end = chunk({}, "length")
  const [choice] = (end as { readonly choices: readonly object[] }).choices
  const closed = { ...end, choices: [{ ...choice, document_complete: true }] }
  const responseFormat = { ...formats.json_schema, closeOnLength: true }
  upstream.play(stream(say('{"age":1}'), closed, "[DONE]"))
  const { events } = await asked({ responseFormat }, { kind: "rakit" })
  expect(events.at(-1)).toEqual({ type: "finish", reason: "length", isWhole: true })
  const { response_format } = upstream.asked[0]?.body ?? {}
  expect(response_format.json_schema.close_on_length).toBe(true)
  await remote.close()
  upstream.play(stream(say('{"age":-1}'), closed, "[DONE]"))
  expect((await asked({ responseFormat }, { kind: "rakit" })).error?.code).toBe("backend_error")
})

describe("an answer in another form than asked", () => {
  const wrong: readonly (readonly [string, FormatName, string, RegExp])[] = [
    ["no JSON", "json_schema", "age: 1", /it is not the json_schema of response_format/],
    ["a list", "json_object", "[]", /it is not the json_object of response_format/],
    [
      "a wrong number",
      "json_schema",
      '{"age":-1}',
      /breaks the minimum of response_format at \/age/,
    ],
    ["a missing key", "json_schema", "{}", /breaks the required of response_format at \//],
    ["a key too many", "json_schema", '{"age":1,"x":1}', /of response_format at \/x/],
    ["a wrong text", "regex", "ABC", /breaks the pattern of response_format/],
    ["a text with more", "regex", "abc!", /breaks the pattern of response_format/],
    ["no choice", "choice", "a-b", /it is not the choice of response_format/],
  ]
  it.each(wrong)("fails by name, and costs nothing: %s", async (_, format, text, why) => {
    upstream.play(saying(text))
    const seen = await asked({ responseFormat: formats[format] }, { kind: "rakit" })
    expect([seen.error?.code, seen.text]).toEqual(["backend_error", text])
    expect(seen.error?.message).toMatch(why)
    expect(upstream.asked).toHaveLength(1)
    const [line] = remote.log.lines.filter(({ event }) => event === "upstream.failed")
    expect(line?.fields.kind).toBe("mismatch")
    // words of the answer stay out of the log
    expect(JSON.stringify(line)).not.toContain("/x")
  })

  it("is tried again before anything of it is sent, where config says so", async () => {
    upstream.play(saying('{"age":-1}'), saying("no"), saying('{"age":3}'))
    const seen = await asked({ responseFormat: formats.json_schema }, {}, { formChecks: "retry" })
    expect([seen.text, seen.finish, seen.error]).toEqual(['{"age":3}', "stop", undefined])
    expect([seen.used.inputTokens, seen.used.outputTokens]).toEqual([5, 2])
    expect(upstream.asked).toHaveLength(3)
  })

  it("fails when no try keeps the form", async () => {
    upstream.play(saying('{"age":-1}'))
    const seen = await asked({ responseFormat: formats.json_schema }, {}, { formChecks: "retry" })
    expect([seen.text, seen.error?.code]).toEqual(["", "backend_error"])
    expect(upstream.asked).toHaveLength(3)
  })

  it("passes where config says so, but must be JSON", async () => {
    upstream.play(saying('{"age":-1}'), saying("no"))
    const at = [{ responseFormat: formats.json_schema }, {}, { formChecks: "off" }] as const
    expect((await asked(...at)).error).toBeUndefined()
    await remote.close()
    expect((await asked(...at)).error?.code).toBe("backend_error")
  })

  it.each([
    ["is not strict", '{"age":-1}', { ...formats.json_schema, strict: false }, "stop"],
    ["is cut", '{"age":', formats.json_schema, "length"],
    ["has a format", '{"age":1,"mail":"x"}', formats.json_schema, "stop"],
    [
      "can't be read",
      "{}",
      { type: "json_schema", schema: { $ref: "#/nowhere" }, strict: true },
      "stop",
    ],
  ] as const)("passes where the schema %s", async (_, text, responseFormat, finish) => {
    upstream.play(saying(text, finish))
    const seen = await asked({ responseFormat })
    expect([seen.error, seen.finish]).toEqual([undefined, finish])
  })

  it("fails for arguments of a strict tool, and for another tool than the named one", async () => {
    const call = (name: string, text: string) =>
      stream(
        chunk({ tool_calls: [{ index: 0, id: "a", function: { name, arguments: text } }] }),
        chunk({}, "tool_calls"),
        "[DONE]",
      )
    const tools = [{ name: "now", parameters: schema, strict: true }, { name: "rm" }]
    upstream.play(call("now", '{"age":"1"}'))
    const first = await asked({ tools })
    expect(first.error?.message).toMatch(/breaks the type of tools at \/age/)
    await remote.close()
    upstream.play(call("rm", "{}"))
    const second = await asked({ tools, toolChoice: { name: "now" } })
    expect(second.error?.message).toMatch(/it called another tool than it had to/)
  })
})

describe("the end of an answer", () => {
  it.each([
    ["stop", "stop"],
    ["eos_token", "stop"],
    ["end_turn", "stop"],
    ["length", "length"],
    ["MAX_TOKENS", "length"],
    ["model_length", "length"],
    ["SAFETY", "content_filter"],
    ["tool_calls", "stop"],
  ])("for the reason %s is %s", async (reason, finish) => {
    upstream.play(saying("Hello", reason))
    expect((await asked({})).finish).toBe(finish)
  })

  it("for a reason that nobody knows may be half an answer, and fails by its name", async () => {
    upstream.play(saying("Hello", "gave up"))
    expect((await asked({}, {}, { retries: 0 })).error?.code).toBe("backend_error")
    expect(JSON.stringify(remote.log.lines)).toContain("ended for the reason 'gave up'")
  })

  it.each([
    { responseFormat: formats.json_schema },
    { tools: [{ name: "now" }], toolChoice: "required" },
  ] as const)("of a refusal, which has no form, is content_filter: %j", async (request) => {
    const refusal = [chunk({ refusal: "I'm sorry, " }), chunk({ refusal: "no." })]
    upstream.play(stream(...refusal, chunk({}, "stop"), usageOf(5, 2), "[DONE]"))
    const { text, finish, error } = await asked(request)
    expect([text, finish, error]).toEqual(["I'm sorry, no.", "content_filter", undefined])
    expect(upstream.asked.length).toBe(1)
  })

  it("with calls is tool_calls, whatever the server calls it", async () => {
    const call = { index: 0, id: "a", function: { name: "now", arguments: "{}" } }
    upstream.play(stream(chunk({ tool_calls: [call] }), chunk({}, "stop"), "[DONE]"))
    expect((await asked({ tools: [{ name: "now" }] })).finish).toBe("tool_calls")
  })

  it.each([
    ["openai", "max_completion_tokens"],
    ["compatible", "max_tokens"],
    ["vllm", "max_tokens"],
    ["sglang", "max_tokens"],
    ["tgi", "max_tokens"],
    ["llamacpp", "max_tokens"],
    ["ollama", "max_tokens"],
    ["rakit", "max_tokens"],
  ])("of %s is bounded by %s alone", async (kind, field) => {
    upstream.play(saying("Hello"))
    await asked({ maxTokens: 7 }, { kind })
    const { max_tokens, max_completion_tokens } = upstream.asked[0]?.body ?? {}
    const other = field === "max_tokens" ? max_completion_tokens : max_tokens
    expect([upstream.asked[0]?.body[field], other]).toEqual([7, undefined])
  })
})
