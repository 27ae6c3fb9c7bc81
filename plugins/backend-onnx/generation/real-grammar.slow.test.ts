import { Ajv2020 } from "ajv/dist/2020.js"
import { beforeAll, describe, expect, test } from "vitest"
import type { Ask, Said } from "./testing/in-process.ts"
import { hasRealModel, realModel } from "./testing/real-model.ts"

const text = { type: "string" } as const
const person = {
  type: "object",
  properties: {
    name: { ...text, maxLength: 30 },
    age: { type: "integer", minimum: 0, maximum: 130 },
    city: { enum: ["Jakarta", "Bandung", "Medan"] },
  },
  required: ["name", "age", "city"],
  additionalProperties: false,
}
const team = {
  type: "object",
  properties: {
    name: text,
    lead: { $ref: "#/$defs/member" },
    members: { type: "array", items: { $ref: "#/$defs/member" }, minItems: 1, maxItems: 3 },
    budget: { anyOf: [{ type: "number" }, { type: "null" }] },
  },
  required: ["name", "lead", "members", "budget"],
  additionalProperties: false,
  $defs: {
    member: {
      type: "object",
      properties: { id: { type: "integer" }, role: { enum: ["dev", "ops"] }, note: text },
      required: ["id", "role", "note"],
      additionalProperties: false,
    },
  },
}
const schemas = [
  person,
  team,
  { type: "object" },
  { type: "array", items: { type: "boolean" }, minItems: 2, maxItems: 9 },
]
const ajv = new Ajv2020()
const validators = schemas.map((schema) => ajv.compile(schema))

const reasonOf = (said: Said) => said.events.find((event) => event.type === "finish")?.reason

describe.skipIf(!hasRealModel)("SmolLM2-135M-Instruct under grammars", { timeout: 240_000 }, () => {
  const model = realModel({ prefixCacheBytes: 2 ** 27 })
  let question: Int32Array
  beforeAll(async () => {
    question = await model.promptOf("Describe a team that builds boats, as JSON.")
  })

  const hot = { temperature: 1, topP: 1, frequencyPenalty: 0, presencePenalty: 0, logitBias: [] }
  const askOf = (
    index: number,
    more: Partial<Ask> & { readonly closeOnLength?: boolean } = {},
  ): Ask => {
    const { closeOnLength = false, ...rest } = more
    const grammar = {
      grammar: { kind: "schema", schema: schemas[index % schemas.length]! },
      closeOnLength,
    } as const
    return { promptIds: question, sampler: hot, seed: index, maxTokens: 200, grammar, ...rest }
  }
  const check = (said: Said, index: number, from = 0) => {
    expect(said.end).toBe("done")
    const document = JSON.parse(said.text.slice(from)) as unknown
    expect([validators[index % schemas.length]!(document), said.text]).toEqual([true, said.text])
  }

  test("eight streams at temperature 1: every document that ends with `stop` validates", async () => {
    const said = await Promise.all(Array.from({ length: 24 }, (_, i) => model.ask(askOf(i))))
    for (const [i, answer] of said.entries()) if (reasonOf(answer) === "stop") check(answer, i)
    expect(said.filter((answer) => reasonOf(answer) === "stop").length).toBeGreaterThan(8)
  })

  test("every document validates, however small the budget is, when it is closed in time", async () => {
    const asks = Array.from({ length: 32 }, (_, i) =>
      askOf(i, { maxTokens: 72 + ((i * 7) % 40), closeOnLength: true }),
    )
    const said = await Promise.all(asks.map((ask) => model.ask(ask)))
    for (const [i, answer] of said.entries()) check(answer, i)
    expect(said.some((answer) => reasonOf(answer) === "length")).toBe(true)
  })

  test("free text comes first, and then the document", async () => {
    const after = "</think>"
    const said = await Promise.all(
      Array.from({ length: 8 }, (_, i) => {
        const ask = askOf(i, { maxTokens: 120, closeOnLength: true })
        return model.ask({ ...ask, grammar: { ...ask.grammar!, after } })
      }),
    )
    for (const [i, answer] of said.entries())
      check(answer, i, answer.text.indexOf(after) + after.length)
  })

  test("a seed says the same alone, among others, cold and warm", async () => {
    const seeded = askOf(1, { seed: 11, maxTokens: 60, account: "seeded" })
    const cold = await model.ask(seeded)
    const warm = await model.ask(seeded)
    const others = Array.from({ length: 4 }, (_, i) => model.ask(askOf(i, { maxTokens: 60 })))
    const among = await model.ask(seeded)
    await Promise.all(others)
    expect([warm.text, among.text]).toEqual([cold.text, cold.text])
  })
})
