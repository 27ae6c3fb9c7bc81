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

it("takes a null for absent, but in a schema, where it is a value", () => {
  const { request } = requestEvidence(body, entry("/"))
  const spelt = { stop: null, messages: [{ role: "user", content: "Halo", name: null }] }
  expect(requestEvidence({ ...body, ...spelt } as never, entry("/")).request).toBe(request)
  const format = (schema: Readonly<Record<string, unknown>>) =>
    requestEvidence(
      { ...body, response_format: { type: "json_schema", json_schema: { name: "s", schema } } },
      entry("/"),
    ).request
  expect(format({ const: null })).not.toBe(format({}))
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
