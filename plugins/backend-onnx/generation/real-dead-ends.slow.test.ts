import { Ajv2020 } from "ajv/dist/2020.js"
import { beforeAll, describe, expect, test } from "vitest"
import { analyseSchema } from "../grammar/schema-report.ts"
import type { Ask, Said } from "./testing/in-process.ts"
import { hasRealModel, realModel } from "./testing/real-model.ts"

const object = (properties: object, more: object = {}) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
})
const role = { enum: ["dev", "ops", "lead", "design"] }
const name = { type: "string", maxLength: 20 }
const schemas = [
  object({ roles: { type: "array", items: role, uniqueItems: true, minItems: 3 } }),
  object({
    pairs: {
      type: "array",
      items: object({ role, senior: { type: "boolean" } }),
      uniqueItems: true,
      minItems: 3,
      maxItems: 6,
    },
  }),
  object({
    names: {
      type: "array",
      items: name,
      contains: { type: "string", pattern: "an" },
      maxItems: 3,
    },
  }),
  object({
    members: {
      type: "array",
      items: object({ name, role }),
      contains: { type: "object", properties: { role: { const: "lead" } } },
      maxContains: 1,
      minItems: 2,
      maxItems: 4,
    },
  }),
  object({
    sizes: {
      type: "array",
      items: { type: "integer", minimum: 1, maximum: 9 },
      uniqueItems: true,
      contains: { multipleOf: 4 },
      minItems: 2,
      maxItems: 4,
    },
  }),
]
const validators = schemas.map((schema) => new Ajv2020({ strict: false }).compile(schema))

const reasonOf = (said: Said) => said.events.find((event) => event.type === "finish")?.reason

describe.skipIf(!hasRealModel)("guarded schemas", { timeout: 240_000 }, () => {
  const model = realModel({ prefixCacheBytes: 2 ** 27 })
  let question: Int32Array
  beforeAll(async () => {
    question = await model.promptOf("Describe a team that builds boats, as JSON.")
  })

  const askOf = (i: number, more: Partial<Ask> = {}): Ask => ({
    promptIds: question,
    sampler: {
      temperature: i % 3 === 0 ? 0 : 1,
      topP: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
      logitBias: [],
    },
    seed: i,
    maxTokens: 300,
    grammar: {
      grammar: { kind: "schema", schema: schemas[i % schemas.length]! },
      closeOnLength: false,
    },
    ...more,
  })

  test("what ends with `stop` validates, alone as among others; errors are named and rare", async () => {
    for (const schema of schemas) expect(analyseSchema(schema).guards).toBeDefined()
    const asks = Array.from({ length: 30 }, (_, i) => askOf(i))
    const together = (
      await Promise.all(
        [0, 1, 2].map(async (lane) => {
          const said: Said[] = []
          for (let i = lane * 10; i < lane * 10 + 10; i++) said.push(await model.ask(asks[i]!))
          return said
        }),
      )
    ).flat()
    const ends = together.map((said, i) => {
      if (said.end !== "done") return said.end
      if (reasonOf(said) === "stop")
        expect([validators[i % schemas.length]!(JSON.parse(said.text)), said.text]).toEqual([
          true,
          said.text,
        ])
      return reasonOf(said)
    })
    // a small model may never write a name with "an"
    expect(ends.filter((end) => end === "stop").length).toBeGreaterThan(22)
    for (const i of [1, 2, 4, 7, 12]) {
      const alone = await model.ask(asks[i]!)
      expect([alone.text, alone.end, alone.tokens]).toEqual([
        together[i]!.text,
        together[i]!.end,
        together[i]!.tokens,
      ])
    }
  })

  test("a document that must be closed keeps to what is checked", async () => {
    let failed = 0
    for (let i = 0; i < 15; i++) {
      const { grammar } = askOf(i).grammar!
      const said = await model.ask(
        askOf(i, { maxTokens: 60 + 5 * i, grammar: { grammar, closeOnLength: true } }),
      )
      if (said.end !== "done") {
        failed++
        continue
      }
      const finish = said.events.find((event) => event.type === "finish")
      expect(finish?.isWhole).toBe(true)
      expect([validators[i % schemas.length]!(JSON.parse(said.text)), said.text]).toEqual([
        true,
        said.text,
      ])
    }
    expect(failed).toBeLessThan(4)
  })
})
