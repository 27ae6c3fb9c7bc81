import { Effect } from "effect"
import { expect, it } from "vitest"
import { type ApiError, errorBody, statusOf } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import { type CallPathFixture, callPathFixture, fakeChatModel } from "../../testing/index.ts"
import { chatEndpoint } from "./testing/chat-endpoint.ts"

interface Line {
  readonly custom_id: string
  readonly body: Json
}

// an endpoint's second interpreter, in twenty lines and without HTTP
const runBatch = (fixture: CallPathFixture, endpoint: Endpoint, jsonl: string) =>
  Effect.gen(function* () {
    const output: string[] = []
    for (const line of jsonl.trim().split("\n")) {
      const { custom_id, body } = JSON.parse(line) as Line
      const answer = (status_code: number, body: Json) =>
        output.push(JSON.stringify({ custom_id, response: { status_code, body } }))
      const input = fixture.input(body, {
        priority: "batch",
        priceFactor: 0.5,
        parent: "batch_1",
        requestId: custom_id,
      })
      yield* fixture.path.runUnsettled(endpoint, input).pipe(
        Effect.flatMap(({ reply, settlement }) => {
          answer(reply.status, "json" in reply ? reply.json : null)
          return fixture.billing.settle([settlement])
        }),
        Effect.catchTag("ApiError", (error: ApiError) =>
          Effect.sync(() => answer(statusOf(error), { error: errorBody(error) })),
        ),
      )
    }
    return output.map(
      (line) =>
        JSON.parse(line) as {
          custom_id: string
          response: { status_code: number; body: Record<string, unknown> }
        },
    )
  })

const line = (custom_id: string, body: object) =>
  JSON.stringify({
    custom_id,
    body: { model: "svc-lyt", messages: [{ role: "user", content: custom_id }], ...body },
  })

it("the chat endpoint runs in a batch worker, without HTTP, at half the price", async () => {
  const model = fakeChatModel({
    says: ({ messages }) => [
      "You said: ",
      ...messages.flatMap(({ content }) =>
        content.map((part) => (part.type === "text" ? part.text : "")),
      ),
    ],
  })
  const fixture = callPathFixture([model])
  const endpoint = chatEndpoint(fixture)
  const jsonl = [
    line("a", {}),
    line("b", { temperature: 9 }),
    line("c", { stream: true }),
    line("d", { model: "gpt-4" }),
    line("e", {}),
  ].join("\n")
  const lines = await Effect.runPromise(runBatch(fixture, endpoint, jsonl))

  expect(lines.map(({ custom_id, response }) => [custom_id, response.status_code])).toEqual([
    ["a", 200],
    ["b", 400],
    ["c", 400],
    ["d", 400],
    ["e", 200],
  ])
  expect(lines[0]?.response.body).toMatchObject({
    object: "chat.completion",
    choices: [{ message: { content: "You said: a" } }],
    usage: { prompt_tokens: 2, completion_tokens: 2, cost_idr: 0.0075 },
  })
  expect(lines[1]?.response.body).toMatchObject({
    error: { code: "invalid_request_error", param: "temperature" },
  })
  expect(lines[2]?.response.body).toMatchObject({
    error: { code: "unsupported_parameter", param: "stream" },
  })

  // the streamed line was admitted, its hold was released, and it never reached the model
  expect(
    fixture.billing.calls.map(({ state, costMicros, request }) => [
      request.requestId,
      request.counts,
      request.parent,
      state,
      costMicros,
    ]),
  ).toEqual([
    ["a", "money", "batch_1", "settled", 7_500n],
    ["c", "money", "batch_1", "voided", 0n],
    ["e", "money", "batch_1", "settled", 7_500n],
  ])
  expect(model.runs.map((run) => [run.state, run.context.priority])).toEqual([
    ["done", "batch"],
    ["done", "batch"],
  ])
  expect(await Effect.runPromise(fixture.billing.balance("acct_1"))).toEqual({
    balanceMicros: 50_000_000_000n - 15_000n,
    heldMicros: 0n,
  })
})

it("tools, results, formats and thoughts work in a batch as they do elsewhere", async () => {
  const fixture = callPathFixture([fakeChatModel()])
  const tools = [
    {
      type: "function",
      function: {
        name: "f",
        parameters: {
          type: "object",
          required: ["city"],
          properties: { city: { type: "string" } },
        },
      },
    },
  ]
  const asked = [
    { role: "user", content: "hi" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "sunny" },
  ]
  const jsonl = [
    line("call", {
      tools,
      tool_choice: "required",
      chat_template_kwargs: { enable_thinking: true },
    }),
    line("result", { tools, messages: asked }),
    line("unanswered", { tools, messages: asked.slice(0, 2) }),
    line("format", {
      response_format: {
        type: "json_schema",
        json_schema: { name: "x", strict: true, schema: tools[0]?.function.parameters },
      },
    }),
  ].join("\n")
  const lines = await Effect.runPromise(runBatch(fixture, chatEndpoint(fixture), jsonl))
  expect(lines.map(({ response }) => response.body)).toMatchObject([
    {
      choices: [
        {
          finish_reason: "tool_calls",
          message: {
            content: null,
            reasoning_content: "Let me think.",
            tool_calls: [{ function: { name: "f", arguments: '{"city":"sample"}' } }],
          },
        },
      ],
      usage: { completion_tokens_details: { reasoning_tokens: 3 } },
    },
    { choices: [{ finish_reason: "stop", message: { content: "sunny" } }] },
    { error: { code: "invalid_request_error", param: "messages[1].tool_calls[0].id" } },
    { choices: [{ finish_reason: "stop", message: { content: '{"city":"sample"}' } }] },
  ])
})

it("a line with several answers is paid for all of them, at half the price, and its prompt once", async () => {
  const fixture = callPathFixture([fakeChatModel({ says: ["one", " two"] })])
  const [alone, three, ...refused] = await Effect.runPromise(
    runBatch(
      fixture,
      chatEndpoint(fixture),
      [line("a", {}), line("b", { n: 3 }), line("c", { functions: [] }), line("d", { n: 9 })].join(
        "\n",
      ),
    ),
  )
  const body = three!.response.body as {
    readonly choices: readonly { readonly index: number }[]
    readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number }
  }
  expect(body.choices.map(({ index }) => index)).toEqual([0, 1, 2])
  expect(body.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 6, cost_idr: 0.0195 })
  expect(alone!.response.body).toMatchObject({ usage: { prompt_tokens: 2, cost_idr: 0.0075 } })
  expect(refused.map(({ response }) => response.body)).toMatchObject([
    { error: { code: "unsupported_parameter", param: "functions" } },
    { error: { code: "invalid_request_error", param: "n" } },
  ])
})
