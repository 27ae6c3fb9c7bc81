import { afterEach, beforeEach, expect, test, vi } from "vitest"
import type { Json } from "../../../core/json.ts"
import { byteVocabulary } from "../grammar/grammar-vocabulary.ts"
import answerGrammar, { type AnswerGrammarInput } from "./answer-grammar-job.ts"

let nowMs = 0
beforeEach(() => {
  vi.spyOn(performance, "now").mockImplementation(() => nowMs)
})
afterEach(() => vi.restoreAllMocks())

const quick = (schema: object): Json => ({ title: "quick", ...schema })
/** The clock moves only when such a schema is read. */
const slow = (schema: object): Json => ({
  get title() {
    nowMs += 1_000
    return "slow"
  },
  ...schema,
})
const set = { type: "array", uniqueItems: true }

const vocabulary = { ...byteVocabulary(), digest: "bytes" }
const isHeavy = (input: Partial<AnswerGrammarInput>): boolean => {
  const found = answerGrammar({ form: { syntax: "hermes", markers: {} }, vocabulary, ...input })
  expect(found).toHaveProperty("constrained")
  return "constrained" in found && found.constrained?.grammar.isHeavy === true
}
const format = (schema: Json) =>
  ({ type: "json_schema", schema, strict: true }) as AnswerGrammarInput["responseFormat"]
const tool = (name: string, tags: Json) => ({
  name,
  parameters: { type: "object", properties: { tags }, additionalProperties: false },
})

test("a grammar is heavy where the analysis of a schema takes long that opening it repeats", () => {
  expect(isHeavy({ responseFormat: format(quick(set)) })).toBe(false)
  expect(isHeavy({ responseFormat: format(slow(set)) })).toBe(true)
  const [a, b, c] = [
    tool("a", quick(set)),
    tool("b", slow(set)),
    tool("c", slow({ type: "string" })),
  ]
  expect(isHeavy({ tools: [a, c] })).toBe(false)
  expect(isHeavy({ tools: [a, b] })).toBe(true)
  expect(isHeavy({ tools: [a, b], toolChoice: { name: "a" } })).toBe(false)
  expect(isHeavy({ tools: [a], responseFormat: format(slow(set)) })).toBe(true)
})
