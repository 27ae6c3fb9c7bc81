import { hash } from "node:crypto"
import { expect, it } from "vitest"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { answerEvidence, requestEvidence } from "./evidence.ts"
import type { ChatBody } from "./request-schema.ts"

const body: ChatBody = { model: "m", messages: [{ role: "user", content: "Halo" }] }
const entry = (folder: string, id = "legal") =>
  ({
    id: "m",
    contextTokens: 512,
    price: { input: 1n },
    sources: [{ url: `file:${folder}/m.gguf` }],
    adapters: [{ id, sources: [{ url: `file:${folder}/legal/` }] }],
  }) as unknown as ModelEntry

it("has the same digest of an entry wherever its files are", () => {
  const { config } = requestEvidence(body, entry("/srv/a"))
  expect(requestEvidence(body, entry("/home/b")).config).toBe(config)
  expect(requestEvidence(body, entry("/srv/a", "poems")).config).not.toBe(config)
})

it("leaves out of the request how its answer is delivered, and the seed", () => {
  const { request } = requestEvidence(body, entry("/srv/a"))
  expect(requestEvidence({ ...body, stream: true, seed: 7 }, entry("/")).request).toBe(request)
  expect(requestEvidence({ ...body, adapter: "legal" }, entry("/")).request).not.toBe(request)
})

const requestOf = (more: object): string =>
  requestEvidence({ ...body, ...more }, entry("/")).request
const tool = (more: object) => ({ tools: [{ type: "function", function: { name: "f", ...more } }] })
const format = (schema: unknown, more: object = {}) => ({
  response_format: { type: "json_schema", json_schema: { name: "s", schema, ...more } },
})
const content = (more: object) => ({
  messages: [{ role: "user", content: [{ type: "text", text: "Halo", ...more }] }],
})

it.each([
  ["a field", { stop: null }, {}],
  ["a message", { messages: [{ role: "user", content: "Halo", name: null }] }, {}],
  ["a block", content({ cache_control: null }), content({})],
  ["a tool", tool({ description: null, strict: null }), tool({})],
  ["a format", format({}, { strict: null }), format({})],
  ["a field of nothing else", { chat_template_kwargs: { enable_thinking: null } }, {}],
])("takes a null of %s for absent", (_, spelt, plain) => {
  expect(requestOf(spelt)).toBe(requestOf(plain))
})

const inSchemas: readonly (readonly [string, (schema: unknown) => object])[] = [
  ["tools", (parameters) => tool({ parameters })],
  ["response_format", (schema) => format(schema)],
  ["guided_json", (guided_json) => ({ guided_json })],
  ["structured_outputs", (json) => ({ structured_outputs: { json } })],
  ["json_schema", (json_schema) => ({ json_schema })],
]

it.each(inSchemas)("keeps order and nulls of the schema in %s", (_, of) => {
  const [a, b] = [{ type: "string" }, { type: "integer" }]
  expect(requestOf(of({ properties: { a, b } }))).not.toBe(requestOf(of({ properties: { b, a } })))
  expect(requestOf(of({ const: null }))).not.toBe(requestOf(of({})))
  expect(requestOf(of({}))).not.toBe(requestOf(of(undefined)))
})

it("sorts the keys beside a schema", () => {
  const turned = { json_schema: { schema: {}, name: "s" }, type: "json_schema" }
  expect(requestOf({ response_format: turned })).toBe(requestOf(format({})))
})

it("digests the JSON with sorted keys, without what is undefined", () => {
  const { request } = requestEvidence({ user: undefined, ...body, n: 2 } as never, entry("/srv/a"))
  const text = '{"messages":[{"content":"Halo","role":"user"}],"model":"m","n":2}'
  expect(request).toBe(`sha256:${hash("sha256", text)}`)
})

it("leaves the ids of calls out of the answer, wherever they are", () => {
  const choices = (id: string, name = "f") => ({
    id,
    choices: [{ index: 0, message: { content: null, tool_calls: [{ id, function: { name } }] } }],
  })
  const { answer } = answerEvidence(choices("call_1"))
  expect(answerEvidence(choices("call_2"))).toEqual({ answer })
  expect(answerEvidence(choices("call_1", "g"))).not.toEqual({ answer })
})
