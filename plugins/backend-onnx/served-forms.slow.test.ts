import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startBatch } from "../../testing/batch-client.ts"
import { batchReplies, openServedChat } from "./testing/served-chat.ts"

let served: Awaited<ReturnType<typeof openServedChat>>
beforeAll(async () => {
  served = await openServedChat()
}, 120_000)
afterAll(() => served?.close())

const messages = [{ role: "user", content: "tell me" }]
const create = (body: object) =>
  served.client.chat.completions.create({
    model: "svc-omni",
    max_tokens: 200,
    messages,
    ...body,
  } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming)

const saidIn = async (body: object) =>
  (await create(body)).choices.map(({ message, finish_reason }) => [message.content, finish_reason])

const streamedIn = async (body: object) => {
  let text = ""
  const stream = (await create({ ...body, stream: true })) as never
  for await (const chunk of stream as AsyncIterable<OpenAI.ChatCompletionChunk>)
    text += chunk.choices[0]?.delta.content ?? ""
  return text
}

/** A client's own grammar. */
const grammar = `
start: "SELECT " column ("," column)* " FROM " table [" WHERE " column "=" NUMBER]
column: "id" | "name"
table: /t[0-9]{1,3}/
%import common.INT -> NUMBER
`
const statement = /^SELECT (id|name)(,(id|name))* FROM t[0-9]{1,3}( WHERE (id|name)=[0-9]+)?$/
const pattern = "[a-z]{2,5}-\\d{3}"
const matching = /^[a-z]{2,5}-\d{3}$/
const date = {
  type: "object",
  properties: { day: { type: "integer", minimum: 1, maximum: 31 } },
  required: ["day"],
  additionalProperties: false,
}
const ofDate = expect.stringMatching(/^\{\s*"day"\s*:\s*\d{1,2}\s*\}$/)

const forms: readonly (readonly [string, object, unknown])[] = [
  ["response_format regex", { response_format: { type: "regex", pattern } }, matching],
  ["guided_regex", { guided_regex: pattern }, matching],
  ["structured_outputs.regex", { structured_outputs: { regex: pattern } }, matching],
  ["response_format grammar", { response_format: { type: "grammar", grammar } }, statement],
  ["guided_grammar", { guided_grammar: grammar }, statement],
  ["structured_outputs.grammar", { structured_outputs: { grammar } }, statement],
  ["guided_grammar in GBNF", { guided_grammar: 'root ::= [a-c]{2} "!"' }, /^[abc]{2}!$/],
  ["guided_choice", { guided_choice: ["yes", "no"] }, /^(yes|no)$/],
  ["structured_outputs.choice", { structured_outputs: { choice: ["yes", "no"] } }, /^(yes|no)$/],
  ["guided_json", { guided_json: date }, ofDate],
  ["structured_outputs.json", { structured_outputs: { json: JSON.stringify(date) } }, ofDate],
]

describe.each(forms)("%s", (_, form, wanted) => {
  const fits = wanted instanceof RegExp ? expect.stringMatching(wanted) : wanted

  it("keeps the form: whole, several, streamed, and beside tools that are not called", async () => {
    const tools = [{ type: "function", function: { name: "f" } }]
    const seeded = { ...form, temperature: 1, seed: 3 }
    const [alone, ...several] = await saidIn({ ...seeded, n: 3 })
    expect([alone, ...several]).toEqual(Array(3).fill([fits, "stop"]))
    expect(await streamedIn(seeded)).toBe(alone![0])
    expect(await saidIn({ ...form, tools, tool_choice: "none" })).toEqual([[fits, "stop"]])
  }, 60_000)
})

it("lines of a batch keep their forms", async () => {
  const { client } = served
  const bodies = forms.map(([name, form]) => [
    name,
    { model: "svc-omni", messages, max_tokens: 200, ...form },
  ])
  const replies = await batchReplies(
    client,
    await startBatch(client, "/v1/chat/completions", Object.fromEntries(bodies)),
  )
  expect(replies.size).toBe(forms.length)
  for (const [name, , wanted] of forms)
    expect(replies.get(name)?.choices[0]?.message.content).toEqual(
      wanted instanceof RegExp ? expect.stringMatching(wanted) : wanted,
    )
}, 120_000)

it("close_on_length ends a text as the form allows", async () => {
  const long = { max_tokens: 12, temperature: 1, seed: 1 }
  const story = 'start: "<b>" /[^<]{1,2000}/ "</b>"'
  expect(
    await saidIn({
      ...long,
      max_tokens: 30,
      response_format: { type: "grammar", grammar: story, close_on_length: true },
    }),
  ).toEqual([[expect.stringMatching(/^<b>[^<]+<\/b>$/), expect.stringMatching("stop|length")]])
  const sum = 'start: "[" N ("+" N)* "]"\nN: /[1-9]/'
  const close_on_length = true
  expect(
    await saidIn({ ...long, response_format: { type: "grammar", grammar: sum, close_on_length } }),
  ).toEqual([
    [expect.stringMatching(/^\[[1-9](\+[1-9])*\]$/), expect.stringMatching("stop|length")],
  ])
  expect(
    await saidIn({
      ...long,
      response_format: { type: "regex", pattern: "\\((ab)*\\)", close_on_length },
    }),
  ).toEqual([[expect.stringMatching(/^\((ab)*\)$/), expect.stringMatching("stop|length")]])
})

describe("schemaInPrompt", () => {
  it("tells the model the schema: its tokens are the prompt's, in dry runs too", async () => {
    const shown = await openServedChat({ options: { schemaInPrompt: true } })
    try {
      const tokensOf = async (client: OpenAI, model: string, description: string) => {
        const schema = { ...date, description }
        const body = {
          model,
          messages,
          max_tokens: 30,
          response_format: { type: "json_schema", json_schema: { name: "date", schema } },
        } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming
        const { usage } = await client.chat.completions.create(body)
        const dry = await client.chat.completions
          .create(body, { headers: { "X-Dry-Run": "1" } })
          .asResponse()
        expect(await dry.json()).toMatchObject({ input_tokens: usage?.prompt_tokens })
        return usage?.prompt_tokens ?? 0
      }
      const without = await tokensOf(served.client, "svc-omni", "")
      expect(await tokensOf(served.client, "svc-omni", "x".repeat(100))).toBe(without)
      const short = await tokensOf(shown.client, "svc-omni", "")
      expect(short).toBeGreaterThan(without + 20)
      expect(await tokensOf(shown.client, "svc-omni", "x y ".repeat(50))).toBeGreaterThan(
        short + 50,
      )
      // a long one is left out rather than take the window
      expect(await tokensOf(shown.client, "svc-lyt", "x y ".repeat(100))).toBe(without)
    } finally {
      await shown.close()
    }
  }, 120_000)
})

describe("400 names what can't be kept", () => {
  const refusalOf = async (body: object) => {
    try {
      await create(body)
      return "ok"
    } catch (error) {
      if (!(error instanceof OpenAI.APIError)) throw error
      return [error.status, error.code, error.param, error.message]
    }
  }
  const tools = [{ type: "function", function: { name: "f" } }]
  const cases: readonly (readonly [string, object, string, string, RegExp])[] = [
    [
      "a pattern that is none",
      { response_format: { type: "regex", pattern: "a(" } },
      "invalid_request_error",
      "response_format.pattern",
      /Unterminated group/,
    ],
    [
      "a reference to a group",
      { guided_regex: "(a)\\1" },
      "unsupported_parameter",
      "guided_regex",
      /reference to a group/,
    ],
    [
      "a pattern that matches nothing",
      { guided_regex: "a^b" },
      "invalid_request_error",
      "guided_regex",
      /no text satisfies it/,
    ],
    [
      "the line of a broken grammar",
      { response_format: { type: "grammar", grammar: 'start: a\na: "b"\n  | (' } },
      "invalid_request_error",
      "response_format.grammar",
      /line 3: /,
    ],
    [
      "the line of a broken pattern in a grammar",
      { structured_outputs: { grammar: 'start: a\na: "b"\n  | /(/' } },
      "invalid_request_error",
      "structured_outputs.grammar",
      /line 2: .*unclosed group/,
    ],
    [
      "tokens by their number",
      { guided_grammar: "start: <[5]>" },
      "unsupported_parameter",
      "guided_grammar",
      /line 1: tokens by their name or number/,
    ],
    [
      "a schema in a grammar",
      { guided_grammar: 'start: "x"\n  | %json {"type": "object", "$ref": "https://a.b/c"}' },
      "unsupported_parameter",
      "guided_grammar",
      /line 2: the keyword "\$ref"/,
    ],
    [
      "a grammar without an answer",
      { guided_grammar: "start: A\nA: /a/ & ~/a/" },
      "invalid_request_error",
      "guided_grammar",
      /no text satisfies it/,
    ],
    [
      "tools beside a grammar",
      { guided_grammar: 'start: "a"', tools },
      "unsupported_parameter",
      "guided_grammar",
      /tools/,
    ],
    [
      "a second form",
      { guided_grammar: 'start: "a"', response_format: { type: "json_object" } },
      "invalid_request_error",
      "guided_grammar",
      /second form/,
    ],
  ]
  it("in a dry run, too, which is free", async () => {
    const dry = (grammar: string) =>
      served.client.chat.completions
        .create({ model: "svc-omni", messages, guided_grammar: grammar } as never, {
          headers: { "X-Dry-Run": "1" },
        })
        .then(
          () => "ok",
          ({ code }) => code,
        )
    expect([await dry('start: "a"'), await dry("start: (")]).toEqual([
      "ok",
      "invalid_request_error",
    ])
  })

  it.each(cases)("%s", async (_, body, code, param, message) => {
    expect(await refusalOf(body)).toEqual([400, code, param, expect.stringMatching(message)])
  })
})
