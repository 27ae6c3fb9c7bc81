import fc from "fast-check"
import { expect, test } from "vitest"
import type { Json } from "../../../core/json.ts"
import { runs } from "../../../testing/property.ts"
import { GrammarFailed } from "../sampling/token-mask.ts"
import compileJob from "./compile-job.ts"
import type { Grammar } from "./constraint.ts"
import { byteVocabulary } from "./grammar-vocabulary.ts"
import { SchemaDocument } from "./schema/document.ts"
import { acceptsValue } from "./schema/validator/accepts.ts"
import { inlineConstraints } from "./testing/inline-constraints.ts"
import { randomSchema, randomValue } from "./testing/random-schemas.ts"

const constraints = inlineConstraints(byteVocabulary())

const isWritten = (grammar: Grammar, document: Json): boolean => {
  const constraint = constraints.open(grammar)
  try {
    for (const byte of Buffer.from(JSON.stringify(document))) constraint.accept(byte)
    return constraint.isComplete()
  } catch (cause) {
    if (!(cause instanceof GrammarFailed)) throw cause
    return false
  } finally {
    constraint.release()
  }
}

/** The value with the properties of all its objects in any order. */
const orders = (value: Json): readonly Json[] => {
  if (Array.isArray(value))
    return value.reduce<readonly Json[][]>(
      (found, item) => found.flatMap((items) => orders(item).map((one) => [...items, one])),
      [[]],
    )
  if (typeof value !== "object" || value === null) return [value]
  const parts = Object.entries(value)
  if (parts.length === 0) return [value]
  return parts.flatMap(([name, part]) =>
    orders(Object.fromEntries(parts.filter(([other]) => other !== name))).flatMap((rest) =>
      orders(part).map((one) => ({ [name]: one, ...(rest as object) }) as Json),
    ),
  )
}

test("what can be written of a strict schema is what satisfies it", () => {
  fc.assert(
    fc.property(
      randomSchema,
      fc.array(randomValue, { minLength: 1, maxLength: 8 }),
      (schema, values) => {
        const compiled = compileJob({ kind: "schema", schema, isStrict: true })
        fc.pre(compiled.result === "ok")
        if (compiled.result !== "ok") return
        const document = new SchemaDocument(schema)
        for (const value of values) {
          const found = orders(value).some((one) => isWritten(compiled.grammar, one))
          expect(found, JSON.stringify([schema, value])).toBe(
            acceptsValue(document, document.root, value),
          )
        }
      },
    ),
    { numRuns: runs(200) },
  )
})
