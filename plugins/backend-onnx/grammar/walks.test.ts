import { expect, test } from "vitest"
import { byteVocabulary } from "./grammar-vocabulary.ts"
import { analyseSchema } from "./schema-report.ts"
import { inlineConstraints } from "./testing/inline-constraints.ts"
import { guardedSchemas, keptSchemas } from "./testing/schemas.ts"
import { independentValidator } from "./testing/validator.ts"
import { closingOf, randomFrom, textOf, walk } from "./testing/walk.ts"

const vocabulary = byteVocabulary()
const constraints = inlineConstraints(vocabulary)
const walks = 4
const mostTokens = 60

for (const [i, schema] of [...keptSchemas, ...guardedSchemas].entries()) {
  test(`whatever is chosen under the mask validates: ${JSON.stringify(schema).slice(0, 120)}`, () => {
    expect(analyseSchema(schema).refused).toBeUndefined()
    const validates = independentValidator(schema)
    for (let n = 0; n < walks; n++) {
      const constraint = constraints.open({ kind: "schema", schema })
      const written = walk(
        constraint,
        vocabulary,
        randomFrom(i * 1_000 + n),
        n % 2 === 0 ? n * 5 : mostTokens,
      )
      const way = constraint.isComplete() ? [] : closingOf(constraint, 600)
      constraint.release()
      const text = textOf(vocabulary, [...written, ...(way ?? [])])
      expect(way, `no way to an end after ${textOf(vocabulary, written)}`).toBeDefined()
      expect(validates(JSON.parse(text)), text).toBe(true)
    }
  })
}
