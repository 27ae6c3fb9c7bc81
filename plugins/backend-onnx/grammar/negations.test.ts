import { expect, test } from "vitest"
import type { Json } from "../../../core/json.ts"
import { GrammarInstance } from "./grammar-instance.ts"
import { byteVocabulary } from "./grammar-vocabulary.ts"
import { acceptsValue } from "./schema/accepts.ts"
import { SchemaDocument } from "./schema/document.ts"
import { tooManyWays } from "./schema/ways.ts"
import { analyseSchema } from "./schema-report.ts"
import { fewDocuments, randomSchemas } from "./testing/combined-schemas.ts"
import { independentValidator } from "./testing/validator.ts"
import { randomFrom } from "./testing/walk.ts"

const schemas = Number(process.env.SCHEMAS ?? 150)
const instance = new GrammarInstance(byteVocabulary())

/** The texts of a document, with its properties in every order. */
const textsOf = (value: Json): readonly string[] => {
  if (typeof value !== "object" || value === null) return [JSON.stringify(value)]
  if (Array.isArray(value))
    return value
      .map(textsOf)
      .reduce((heads, texts) => heads.flatMap((head) => texts.map((text) => [...head, text])), [
        [] as readonly string[],
      ] as readonly (readonly string[])[])
      .map((items) => `[${items.join(",")}]`)
  const orders = (rest: readonly string[]): readonly (readonly string[])[] =>
    rest.length === 0
      ? [[]]
      : rest.flatMap((name) =>
          orders(rest.filter((other) => other !== name)).flatMap((tail) =>
            textsOf((value as Record<string, Json>)[name]).map((text) => [
              `${JSON.stringify(name)}:${text}`,
              ...tail,
            ]),
          ),
        )
  return orders(Object.keys(value)).map((parts) => `{${parts.join(",")}}`)
}

const writes = (matcher: number, text: string): boolean => {
  const clone = instance.clone(matcher)
  const written =
    Buffer.from(text).every((byte) => instance.consume(clone, byte)) && instance.isAccepting(clone)
  instance.free(clone)
  return written
}

test("what is written and passes the guards is what is valid", () => {
  const next = randomSchemas(randomFrom(Number(process.env.SEED ?? 7)))
  let withoutGuards = 0
  for (let i = 0; i < schemas; i++) {
    const schema = next()
    const { enforced, guards, refused } = analyseSchema(schema)
    if (refused || (enforced && tooManyWays(enforced))) continue
    const validates = independentValidator(schema)
    const document = new SchemaDocument(schema)
    let matcher: number | undefined
    try {
      matcher = enforced && instance.compile("schema", JSON.stringify(enforced))
    } catch (cause) {
      expect(String(cause), JSON.stringify(schema)).toMatch(/Unsatisfiable/)
    }
    if (!guards) withoutGuards++
    for (const value of fewDocuments) {
      const accepted =
        matcher !== undefined &&
        textsOf(value).some((text) => writes(matcher, text)) &&
        (!guards || acceptsValue(document, document.root, value))
      expect(accepted, `${JSON.stringify(schema)}: ${JSON.stringify(value)}`).toBe(validates(value))
    }
    if (matcher !== undefined) instance.free(matcher)
  }
  expect(withoutGuards).toBeGreaterThan(schemas / 3)
})
