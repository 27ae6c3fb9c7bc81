import { expect, test } from "vitest"
import type { Json } from "../../../core/json.ts"
import compileJob from "./compile-job.ts"
import { grammarVocabulary, sharedVocabulary } from "./grammar-vocabulary.ts"

const letters = [..."abcdeghilmnorstu"]
const pairs = letters.flatMap((a) => letters.map((b) => a + b))
/** Single bytes, and words of two, four and six letters with and without a space, as models have. */
const words = pairs.flatMap((pair, i) => {
  const long = pair + pairs[(i * 7) % pairs.length]! + pairs[(i * 31) % pairs.length]!
  return [pair, long.slice(0, 4), long, ` ${pair}`, ` ${long}`, `${pair} ${long}`, `${pair}\n`]
})
const vocabulary = sharedVocabulary(
  grammarVocabulary(
    257 + words.length,
    (id) => (id < 256 ? Uint8Array.of(id) : Buffer.from(words[id - 257] ?? "")),
    [256],
  ),
)
const strict = (schema: Json) =>
  compileJob({ kind: "schema", schema, isStrict: true, withReport: true, vocabulary })

const objectOf = (properties: Readonly<Record<string, Json>>) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
})
const wordCount = { minLength: 1, maxLength: 5_000, pattern: "^$|(^(?:\\S+\\s+){0,99}\\S+$)" }

test("a pattern that fails in the middle of an answer is refused by its place, before", () => {
  const text = { type: "string", ...wordCount }
  const report = strict(objectOf({ title: { type: "string" }, "a/b": text, other: text }))
  const path = "/properties/a~1b/pattern"
  expect(report).toMatchObject({ result: "refused", keyword: "pattern", path })
  if (report.result === "refused")
    expect(report.keywords?.find((one) => one.path === path)).toMatchObject({ verdict: "refused" })
  for (const pattern of ["^(([a-z]{1,100}){1,100}){1,100}$", "^(\\p{L}{1,200} ?){1,200}$"])
    expect(strict({ type: "array", items: { type: "string", pattern } }), pattern).toMatchObject({
      result: "refused",
      keyword: "pattern",
      path: "/items/pattern",
    })
})

test("the texts that are tried are bounded", () => {
  const many = Object.fromEntries(
    Array.from({ length: 201 }, (_, i) => [
      `p${i}`,
      { type: "string", pattern: `^x{${i + 100}}$` },
    ]),
  )
  expect(strict({ type: "object", properties: many })).toMatchObject({
    result: "refused",
    path: "/properties/p200/pattern",
  })
})

test("where it is not strict, the rest of such a schema still guides", () => {
  const schema = objectOf({ n: { type: "integer" }, text: { type: "string", ...wordCount } })
  expect(compileJob({ kind: "schema", schema, isStrict: false, vocabulary })).toMatchObject({
    result: "ok",
    grammar: {
      schema: objectOf({
        n: { type: "integer" },
        text: { type: "string", minLength: 1, maxLength: 5_000 },
      }),
    },
  })
})

test("patterns that people write are kept", () => {
  for (const text of [
    { pattern: "^[a-z0-9._%+-]{1,64}@[a-z0-9.-]{1,255}\\.[a-z]{2,63}$" },
    { pattern: "^[A-Z]{3}-\\d{4}$", maxLength: 100 },
    { pattern: "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$", maxLength: 63 },
    { pattern: "^[^,]{0,50}(,[^,]{0,50}){0,9}$" },
    { format: "uri", maxLength: 2_000 },
    { minLength: 10_000 },
  ])
    expect(strict({ type: "string", ...text }), JSON.stringify(text)).toMatchObject({
      result: "ok",
    })
})

test("a verdict is that of the vocabulary: over single bytes the same schema is kept", () => {
  const schema = { type: "string", pattern: "^(\\p{L}{1,200} ?){1,200}$" }
  expect(compileJob({ kind: "schema", schema, isStrict: true })).toMatchObject({ result: "ok" })
  expect(strict(schema)).toMatchObject({ result: "refused" })
  expect(strict(schema)).toBe(strict({ ...schema }))
})
