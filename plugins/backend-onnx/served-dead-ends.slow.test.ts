import { Ajv2020 } from "ajv/dist/2020.js"
import OpenAI from "openai"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { completedBatch, startBatch } from "../../testing/batch-client.ts"
import { createWith, logit_bias, openServedChat } from "./testing/served-chat.ts"

let served: Awaited<ReturnType<typeof openServedChat>>
let db: pg.Client
beforeAll(async () => {
  served = await openServedChat()
  db = new pg.Client({ connectionString: served.platform.env.DATABASE_URL })
  await db.connect()
}, 120_000)
afterAll(async () => {
  await db?.end()
  await served?.close()
})

const messages = [{ role: "user", content: "tell me" }]
const response_format = (schema: object, more: object = {}) => ({
  type: "json_schema",
  json_schema: { name: "answer", strict: true, schema, ...more },
})
const object = (properties: object) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})
/** Each item is written and fine; that one of them must be another shows at the end only. */
const never = {
  type: "array",
  items: { type: "string", pattern: "^a{1,2}$" },
  contains: { pattern: "b" },
  maxItems: 2,
}
/** What goes out before it can't be written anew. */
const later = object({ first: { enum: ["one", "two"] }, never })

const bodyOf = (schema: object, more: object = {}) => ({
  messages,
  model: "svc-omni",
  response_format: response_format(schema),
  max_tokens: 200,
  temperature: 1,
  seed: 3,
  logit_bias,
  ...more,
})

/** The calls in the ledger that are not known yet. */
const known = new Set<string>()
const newCalls = async () => {
  const { rows } = await db.query(
    "SELECT id, state, cost_micros FROM ledger_call WHERE endpoint = 'chat.completions'",
  )
  const fresh = rows.filter(({ id }) => !known.has(id))
  for (const { id } of fresh) known.add(id)
  return fresh.map(({ state, cost_micros }) => [state, Number(cost_micros)])
}
const heldMicros = async () => {
  const { rows } = await db.query(
    "SELECT coalesce(sum(hold_micros), 0) AS held FROM ledger_call WHERE state = 'open'",
  )
  return Number(rows[0].held)
}

const failureOf = async (work: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> => {
  const failure = await work.then(
    () => undefined,
    (cause) => cause,
  )
  expect(failure).toBeInstanceOf(OpenAI.APIError)
  return failure
}

describe("a schema that no answer satisfies", () => {
  const expected = { code: "schema_not_satisfied", type: "invalid_request_error" }

  it("fails by name, is not charged, and holds nothing", async () => {
    await newCalls()
    for (const schema of [never, later]) {
      const failure = await failureOf(createWith(served.client, bodyOf(schema)))
      expect(failure).toMatchObject({ status: 422, ...expected })
      expect(failure.headers?.get("x-cost-idr")).toBe("0")
      expect(await newCalls()).toEqual([["voided", 0]])
    }
    expect(await heldMicros()).toBe(0)
  })

  it("fails a stream by its status where nothing has gone out, and by an event behind what has", async () => {
    const stream = (schema: object) =>
      createWith(served.client, bodyOf(schema, { stream: true })) as unknown as Promise<
        AsyncIterable<OpenAI.ChatCompletionChunk>
      >
    const nothing = await failureOf(
      (async () => {
        for await (const chunk of await stream(never)) expect(chunk).toBeUndefined()
      })(),
    )
    // on a machine that is busy the head goes out before the answer has failed
    expect([422, undefined]).toContain(nothing.status)
    expect(nothing).toMatchObject(expected)
    let text = ""
    const failure = await failureOf(
      (async () => {
        for await (const { choices } of await stream(later)) {
          expect(choices[0]?.finish_reason ?? null).toBeNull()
          text += choices[0]?.delta.content ?? ""
        }
      })(),
    )
    expect(failure).toMatchObject(expected)
    expect(text).toMatch(/^\{\s*"first"\s*:\s*"(one|two)"/)
    expect(text).not.toContain("a")
    await expect.poll(newCalls).toEqual([
      ["voided", 0],
      ["voided", 0],
    ])
    expect(await heldMicros()).toBe(0)
  })

  it("fails its line of a batch, once, and the others go on", async () => {
    const { client } = served
    const id = await startBatch(client, "/v1/chat/completions", {
      never: bodyOf(never),
      fine: bodyOf(object({ first: { enum: ["one", "two"] } })),
      later: bodyOf(later),
    })
    const batch = await completedBatch(client, id)
    expect(batch.request_counts).toMatchObject({ total: 3, completed: 1, failed: 2 })
    const errors = await (await client.files.content(batch.error_file_id!)).text()
    for (const name of ["never", "later"])
      expect(errors).toMatch(
        new RegExp(`"${name}".*schema_not_satisfied|schema_not_satisfied.*"${name}"`),
      )
    const calls = await newCalls()
    expect(calls.filter(([, cost]) => cost !== 0)).toHaveLength(1)
    expect(await heldMicros()).toBe(0)
  }, 90_000)
})

describe("a schema that is checked on finished values", () => {
  const set = {
    type: "array",
    items: object({ a: { enum: [1, 2] }, b: { type: "boolean" } }),
    uniqueItems: true,
    minItems: 3,
    maxItems: 4,
  }
  const some = {
    type: "array",
    items: { type: "string", pattern: "^[ab]{1,3}$" },
    contains: { type: "string", pattern: "ab" },
    maxItems: 2,
  }
  const schema = object({ set, some })
  const isValid = new Ajv2020().compile(schema)

  it("is kept by every answer that stops, whole and streamed the same, charged for what is said", async () => {
    for (let seed = 0; seed < 6; seed++) {
      const body = bodyOf(schema, { seed, max_tokens: 400, logprobs: true })
      const { choices, usage } = await createWith(served.client, body)
      const { content } = choices[0]!.message
      expect([choices[0]!.finish_reason, isValid(JSON.parse(content!))]).toEqual(["stop", true])
      const tokens = choices[0]!.logprobs!.content!
      expect(Buffer.from(tokens.flatMap(({ bytes }) => bytes!)).toString()).toBe(content)
      expect(usage!.completion_tokens - tokens.length).toBeLessThanOrEqual(1)
      const stream = (await createWith(served.client, {
        ...body,
        stream: true,
      })) as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>
      let text = ""
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ""
      expect(text).toBe(content)
    }
  }, 60_000)

  it("says whether a document that had to be closed is whole", async () => {
    const closed = async (max_tokens: number, schema: object) => {
      const { choices } = await createWith(
        served.client,
        bodyOf(schema, {
          max_tokens,
          response_format: response_format(schema, { close_on_length: true }),
        }),
      )
      const [choice] = choices as unknown as readonly [
        OpenAI.ChatCompletion.Choice & { readonly document_complete?: boolean },
      ]
      return choice
    }
    const free = object({ text: { type: "string" } })
    const cut = await closed(30, free)
    expect(cut).toMatchObject({ finish_reason: "length", document_complete: true })
    expect(JSON.parse(cut.message.content!)).toMatchObject({ text: expect.any(String) })
    const none = await closed(4, free)
    expect(none).toMatchObject({ finish_reason: "length", document_complete: false })
    const whole = await closed(400, schema)
    expect([whole.document_complete, isValid(JSON.parse(whole.message.content!))]).toEqual([
      true,
      true,
    ])
    const plain = await createWith(served.client, bodyOf(free, { max_tokens: 30 }))
    expect(plain.choices[0]).not.toHaveProperty("document_complete")
  }, 60_000)
})
