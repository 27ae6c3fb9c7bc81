// Every example, through the types that openapi-typescript makes of /openapi.json.
import assert from "node:assert/strict"
import createClient from "openapi-fetch"
import type { components, paths } from "./api.js"

type Schemas = components["schemas"]

const { RAKIT_URL: baseUrl = "", RAKIT_KEY: key = "", RAKIT_SESSION: session = "" } = process.env
const withBearer = (token: string) =>
  createClient<paths, "application/json">({
    baseUrl,
    headers: { authorization: `Bearer ${token}` },
  })
const client = withBearer(key)

/** What a dry run would not give. */
const real = <A extends object>(reply: A | Schemas["DryRun"] | undefined): A => {
  assert(reply && !("would_succeed" in reply))
  return reply as A
}

const model = "svc-lyt"
const messages: Schemas["ChatMessage"][] = [{ role: "user", content: "one two three" }]

const chat = async (body: Omit<Schemas["ChatCompletionRequest"], "model" | "messages">) => {
  const { data, response } = await client.POST("/v1/chat/completions", {
    body: { model, messages, ...body },
    params: { header: { "Idempotency-Key": crypto.randomUUID() } },
  })
  return { reply: real(data), callId: response.headers.get("x-call-id") ?? "" }
}

// a chat, and its receipt
const { reply, callId } = await chat({ max_tokens: 20, temperature: 0.5, stop: ["\n"] })
assert.equal(reply.choices[0]?.message.content, "one two three")
assert(reply.usage.cost_idr > 0)
const receipt = await client.GET("/v1/receipts/{call_id}", {
  params: { path: { call_id: callId } },
})
assert.equal(typeof receipt.data, "object")

// a stream
const streamed = await client.POST("/v1/chat/completions", {
  body: { model, messages, stream: true, stream_options: { include_usage: true } },
  parseAs: "text",
})
const events = String(streamed.data)
  .split("\n\n")
  .filter((line) => line.startsWith("data: {"))
  .map((line) => JSON.parse(line.slice("data: ".length)) as Schemas["ChatCompletionChunk"])
assert.equal(events.map((event) => event.choices[0]?.delta.content ?? "").join(""), "one two three")
assert.equal(events.at(-1)?.usage?.completion_tokens, 3)

// tools
const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
}
const called = await chat({
  tools: [{ type: "function", function: { name: "get_weather", parameters } }],
  tool_choice: { type: "function", function: { name: "get_weather" } },
})
const [call] = called.reply.choices[0]?.message.tool_calls ?? []
assert.equal(call?.function.name, "get_weather")

// structured output
const structured = await chat({
  response_format: {
    type: "json_schema",
    json_schema: { name: "city", schema: parameters, strict: true },
  },
})
assert.deepEqual(JSON.parse(structured.reply.choices[0]?.message.content ?? ""), { city: "sample" })

// an image, which is refused by name
const seen = await client.POST("/v1/chat/completions", {
  body: {
    model,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: "https://example.com/cat.png", detail: "low" } },
        ],
      },
    ],
  },
})
assert.equal(seen.error?.error.code, "unsupported_parameter")
assert.equal(seen.error?.error.param, "messages[0].content[1].image_url")

// embeddings and rerank
const embedded = real(
  (await client.POST("/v1/embeddings", { body: { model: "svc-embed", input: ["a", "b"] } })).data,
)
assert.equal(embedded.data.length, 2)
const ranked = real(
  (
    await client.POST("/v1/rerank", {
      body: { model: "svc-rerank", query: "a", documents: ["a", "b"], top_n: 1 },
    })
  ).data,
)
assert.equal(ranked.results.length, 1)

// models, without a key
const models = await createClient<paths, "application/json">({ baseUrl }).GET("/v1/models")
assert(models.data?.data.some(({ id }) => id === model))

// a file: upload, list, download, and in parts
const lines = [1, 2]
  .map((n) =>
    JSON.stringify({
      custom_id: `line-${n}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: { model, messages },
    }),
  )
  .join("\n")
const toForm = (body: object) => {
  const form = new FormData()
  for (const [name, value] of Object.entries(body)) form.append(name, value)
  return form
}
// openapi-typescript knows bytes as strings
const bytesOf = (text: string) => new File([text], "lines.jsonl") as unknown as string
const file = real(
  (
    await client.POST("/v1/files", {
      body: {
        file: bytesOf(lines),
        purpose: "batch",
        "expires_after[anchor]": "created_at",
        "expires_after[seconds]": 3_600,
      },
      bodySerializer: toForm,
    })
  ).data,
)
assert.equal(file.bytes, lines.length)
const listed = await client.GET("/v1/files", {
  params: { query: { limit: 1, order: "desc", purpose: "batch_input" } },
})
assert.equal(listed.data?.data[0]?.id, file.id)
const content = await client.GET("/v1/files/{id}/content", {
  params: { path: { id: file.id } },
  parseAs: "text",
})
assert.equal(content.data, lines)

const upload = real(
  (
    await client.POST("/v1/uploads", {
      body: { filename: "lines.jsonl", purpose: "batch", bytes: 4, mime_type: "application/jsonl" },
    })
  ).data,
)
const part = real(
  (
    await client.POST("/v1/uploads/{id}/parts", {
      params: { path: { id: upload.id } },
      body: { data: bytesOf("{}{}") },
      bodySerializer: toForm,
    })
  ).data,
)
const whole = real(
  (
    await client.POST("/v1/uploads/{id}/complete", {
      params: { path: { id: upload.id } },
      body: { part_ids: [part.id] },
    })
  ).data,
)
assert.equal(whole.file?.bytes, 4)

// a batch: what it would cost, then for real
const order = { input_file_id: file.id, endpoint: "/v1/chat/completions" }
const forecast = await client.POST("/v1/batches", {
  body: order,
  params: { header: { "X-Dry-Run": true } },
})
assert(forecast.data && "would_succeed" in forecast.data)
assert.equal(forecast.data.would_succeed, true)
let batch = real((await client.POST("/v1/batches", { body: order })).data)
while (batch.status === "validating" || batch.status === "in_progress") {
  await new Promise((resolve) => setTimeout(resolve, 50))
  const { data } = await client.GET("/v1/batches/{id}", { params: { path: { id: batch.id } } })
  assert(data)
  batch = data
}
assert.equal(batch.status, "completed")
const batches = await client.GET("/v1/batches", { params: { query: { limit: 5 } } })
assert.equal(batches.data?.first_id, batch.id)

// webhooks
const webhook = real(
  (
    await client.POST("/v1/webhooks", {
      body: { url: "https://example.com/hooks", events: ["batch.completed"] },
    })
  ).data,
)
assert.equal(typeof webhook.id, "string")
const gone = real(
  (await client.DELETE("/v1/webhooks/{id}", { params: { path: { id: webhook.id } } })).data,
)
assert.equal(gone.deleted, true)

// a session
const keys = await withBearer(session).GET("/dashboard/keys", { params: { query: { limit: 1 } } })
assert.equal(keys.data?.data.length, 1)
const usage = await withBearer(session).GET("/dashboard/usage", {
  params: { query: { group_by: "model", format: "json" } },
})
assert.equal(usage.response.status, 200)

// an error
const wrong = await withBearer("svc_live_wrong").GET("/v1/files")
assert.equal(wrong.error?.error.code, "authentication_error")
console.log("every example")
