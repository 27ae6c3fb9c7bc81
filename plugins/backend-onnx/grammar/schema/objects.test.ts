import { expect, test } from "vitest"
import { analyseSchema } from "../schema-report.ts"

const objectWith = (count: number, minProperties: number) =>
  analyseSchema({
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: count }, (_, i) => [`p${i}`, { type: "integer" }]),
    ),
    additionalProperties: false,
    minProperties,
  })

test("the choices of properties are counted without trying the subsets", () => {
  expect(objectWith(60, 60).enforced).toMatchObject({
    allOf: [{}, { required: Array.from({ length: 60 }, (_, i) => `p${i}`) }],
  })
  expect(objectWith(60, 60).guards).toBeUndefined()
  expect(objectWith(40, 39).guards).toBeUndefined()
  expect(objectWith(60, 59)).toMatchObject({ refused: undefined, guards: {} })
  expect(objectWith(60, 61).enforced).toBeUndefined()
})

test("what is evaluated by too many schemas is checked on finished values", () => {
  const resources = (count: number) => ({
    type: "object",
    $ref: "r0",
    unevaluatedProperties: false,
    $defs: Object.fromEntries(
      Array.from({ length: count }, (_, i) => [
        `d${i}`,
        {
          $id: `r${i}`,
          $dynamicAnchor: `a${i}`,
          allOf: [
            { type: "object" },
            ...Array.from({ length: count - i - 1 }, (_, j) => ({ $ref: `r${i + j + 1}` })),
          ],
        },
      ]),
    ),
  })
  expect(analyseSchema(resources(3)).guards).toBeUndefined()
  expect(analyseSchema(resources(11))).toMatchObject({ refused: undefined, guards: {} })
})
