import fc from "fast-check"
import { expect, test } from "vitest"
import type { Json } from "../../../../core/json.ts"
import { runs } from "../../../../testing/property.ts"
import { GrammarInstance } from "../grammar-instance.ts"
import { byteVocabulary } from "../grammar-vocabulary.ts"
import { analyseSchema } from "../schema-report.ts"
import { atScale, type Decimal } from "./decimal.ts"

const instance = new GrammarInstance(byteVocabulary())

/** Which of the texts the masks let through; undefined: no document satisfies the schema. */
const accepted = (schema: Json, texts: readonly string[]): readonly boolean[] | undefined => {
  const { enforced, refused } = analyseSchema(schema)
  expect(refused, JSON.stringify(schema)).toBeUndefined()
  if (!enforced) return undefined
  const whole = instance.compile("schema", JSON.stringify(enforced))
  const found = texts.map((text) => {
    const matcher = instance.clone(whole)
    const isIn =
      Buffer.from(text).every((byte) => instance.consume(matcher, byte)) &&
      instance.isAccepting(matcher)
    instance.free(matcher)
    return isIn
  })
  instance.free(whole)
  return found
}

const check = (schema: Json, yes: readonly string[], no: readonly string[]): void => {
  const found = accepted(schema, [...yes, ...no])
  const named = [...yes, ...no].filter((_, i) => (found?.[i] ?? false) !== i < yes.length)
  expect(named, JSON.stringify(schema)).toEqual([])
}

test("decimals that begin a bound are within it", () => {
  check(
    { type: "number", maximum: 99.95 },
    ["99.9", "99.90", "99.95", "99", "-99.96"],
    ["99.951", "99.96"],
  )
  check(
    { type: "number", exclusiveMaximum: 100 },
    ["99.9", "99.99", "99.999999999"],
    ["100", "100.0"],
  )
  check(
    { type: "number", maximum: 3.14259 },
    ["3.1", "3.14", "3.142", "3.1425", "3.14259"],
    ["3.1426", "3.2"],
  )
  check({ type: "number", minimum: -99.95 }, ["-99.9", "-99.95"], ["-99.951"])
  check({ type: "number", minimum: 0.9, maximum: 0.95 }, ["0.9", "0.91", "0.95"], ["0.8", "0.951"])
  check(
    { type: "number", minimum: 0.05, maximum: 0.054 },
    ["0.05", "0.053"],
    ["0.0", "0.049", "0.055"],
  )
})

test("large integers are written, and none beyond a bound", () => {
  check(
    { type: "integer" },
    ["1234567890123456789", "9223372036854775807", "-1234567890123456789"],
    [],
  )
  check(
    { type: "integer", maximum: 1e16 },
    ["9007199254740993", "10000000000000000"],
    ["10000000000000001"],
  )
  check({ type: "number", maximum: 1.7976931348623157e308 }, ["123456789012345678.5"], ["1e5"])
  check({ type: "number", minimum: 1e-20 }, ["0.00000000000000001", "5"], ["0", "-1"])
})

test("bounds too close to write a number between them are refused, not called impossible", () => {
  const refused = (schema: Json) => analyseSchema(schema).refused?.keyword
  expect(refused({ type: "number", minimum: 5e-324, maximum: 5e-324 })).toBe("maximum")
  expect(refused({ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1e-15 })).toBe(
    "exclusiveMaximum",
  )
  expect(refused({ type: "number", minimum: 2, maximum: 1 })).toBeUndefined()
  expect(refused({ type: "number", exclusiveMinimum: 1, maximum: 1 })).toBeUndefined()
  expect(refused({ type: "integer", minimum: 0.2, maximum: 0.3 })).toBeUndefined()
})

test("decimal steps are written as digits", () => {
  check(
    { type: "number", multipleOf: 0.01 },
    ["0", "1.5", "19.99", "-0.07", "-3"],
    ["0.001", "1.005"],
  )
  check(
    { type: "number", multipleOf: 0.05, maximum: 2 },
    ["1.95", "1.9", "2", "-7.05"],
    ["1.96", "2.05"],
  )
  check({ type: "number", multipleOf: 0.25 }, ["1.5", "1.25", "1.50", "2", "-0.75"], ["1.3", "0.1"])
  check(
    { type: "number", multipleOf: 0.125, minimum: 0 },
    ["0.5", "0.25", "0.375"],
    ["0.3", "0.05"],
  )
  check({ type: "number", multipleOf: 0.1, minimum: 0.3, maximum: 0.3 }, ["0.3"], ["0.2", "0.4"])
  check(
    { type: "number", multipleOf: 0.01, maximum: 99.95, minimum: 1 },
    ["99.9", "99.95"],
    ["99.96", "0.99"],
  )
  check({ type: "integer", multipleOf: 0.3 }, ["3", "-6", "0"], ["1", "2"])
  check({ type: "integer", multipleOf: 0.01 }, ["7"], ["0.5"])
})

test("a step that is not written is checked on finished numbers, between the multiples of a part of it", () => {
  const { keywords, guards } = analyseSchema({ type: "integer", multipleOf: 86_400 })
  expect(keywords.find(({ keyword }) => keyword === "multipleOf")).toMatchObject({
    verdict: "enforced",
    reason: "checked on finished values",
  })
  expect([...(guards?.keywords.keys() ?? [])]).toEqual([""])
  check({ type: "integer", multipleOf: 86_400 }, ["86400", "0", "-172800"], ["86401", "86399"])
  expect(analyseSchema({ type: "number", multipleOf: 1e-8 }).refused).toBeUndefined()
})

/** Decimals as texts, of all sizes, without zeros at the end. */
const decimal = fc
  .record({
    isNegative: fc.boolean(),
    whole: fc.oneof(
      fc.constantFrom("0", "9", "10", "99", "100"),
      fc.bigInt({ min: 0n, max: 10n ** 12n }).map(String),
      fc.integer({ min: 0, max: 120 }).map(String),
    ),
    fraction: fc.oneof(
      fc.constantFrom("", "9", "95", "99", "05", "5", "001", "000000000001"),
      fc.string({ unit: fc.constantFrom("0", "1", "5", "9"), maxLength: 4 }),
    ),
  })
  .map(({ isNegative, whole, fraction }) => {
    const behind = fraction.replace(/0+$/, "")
    const text = behind === "" ? whole : `${whole}.${behind}`
    return isNegative && text !== "0" ? `-${text}` : text
  })

const exactly = (text: string): Decimal => {
  const [whole, fraction = ""] = text.split(".")
  return { digits: BigInt(`${whole}${fraction}`), scale: fraction.length }
}

/** Numbers that a schema can hold. */
const bound = decimal.filter((text) => String(Number(text)) === text)

const order = (a: string, b: string): number => {
  const [left, right] = [exactly(a), exactly(b)]
  const scale = Math.max(left.scale, right.scale)
  const apart = atScale(left, scale, "up") - atScale(right, scale, "up")
  return apart < 0n ? -1 : Number(apart > 0n)
}

/** Also as doubles: what is rounded to an excluded bound is not written. */
const isAbove = (a: string, b: string): boolean => order(a, b) > 0 && Number(a) > Number(b)

/** Texts around a bound: its beginnings, and a digit more or less. */
const around = (bound: string): readonly string[] => [
  bound,
  ...Array.from({ length: bound.length }, (_, i) => bound.slice(0, i + 1)).filter(
    (text) => /^-?(0|[1-9]\d*)(\.\d*[1-9])?$/.test(text) && text !== "-0",
  ),
  `${bound}${bound.includes(".") ? "" : "."}1`,
]

test("exactly the decimals between the bounds are written", () => {
  fc.assert(
    fc.property(
      fc.option(bound),
      fc.option(bound),
      fc.boolean(),
      fc.boolean(),
      fc.array(decimal, { maxLength: 10 }),
      (low, high, isOpenBelow, isOpenAbove, more) => {
        const schema = {
          type: "number",
          ...(low !== null && { [isOpenBelow ? "exclusiveMinimum" : "minimum"]: Number(low) }),
          ...(high !== null && { [isOpenAbove ? "exclusiveMaximum" : "maximum"]: Number(high) }),
        }
        const texts = [
          ...more,
          ...(low === null ? [] : around(low)),
          ...(high === null ? [] : around(high)),
        ]
        const isIn = (text: string) =>
          (low === null || (isOpenBelow ? isAbove(text, low) : order(text, low) >= 0)) &&
          (high === null || (isOpenAbove ? isAbove(high, text) : order(text, high) <= 0))
        const found = accepted(schema, texts)
        for (const [i, text] of texts.entries()) {
          const isWritten = found?.[i] ?? false
          // digits beyond a double's may be left out, never let anything through
          const isExact = String(Number(text)) === text
          const isRight = isWritten === isIn(text) || !(isWritten || isExact)
          expect(isRight, `${text} of ${JSON.stringify(schema)}`).toBe(true)
        }
        // zeros at the end of a decimal may be left out, never let anything through
        const padded = accepted(
          schema,
          texts.map((text) => `${text}${text.includes(".") ? "" : "."}0`),
        )
        for (const [i, text] of texts.entries())
          expect(!padded?.[i] || isIn(text), `${text}0 of ${JSON.stringify(schema)}`).toBe(true)
      },
    ),
    { numRuns: runs(800) },
  )
})

/** The largest multiple of a step that is written: it has 15 digits. */
const largestMultiple = ({ scale }: Decimal): string => String(10 ** (15 - scale))

test("exactly the multiples between the bounds are written", () => {
  const steps = [
    "0.01",
    "0.1",
    "0.05",
    "0.001",
    "0.25",
    "0.5",
    "0.125",
    "0.3",
    "1.5",
    "7",
    "10",
    "12.5",
    "1000",
  ]
  fc.assert(
    fc.property(
      fc.constantFrom(...steps),
      fc.option(bound),
      fc.option(bound),
      fc.array(decimal, { maxLength: 10 }),
      fc.array(fc.integer({ min: -3_000, max: 3_000 }), { maxLength: 10 }),
      (step, low, high, more, multiples) => {
        const schema = {
          type: "number",
          multipleOf: Number(step),
          ...(low !== null && { minimum: Number(low) }),
          ...(high !== null && { maximum: Number(high) }),
        }
        const { digits, scale } = exactly(step)
        const textOf = (multiple: number) =>
          String(Number(`${BigInt(multiple) * digits}e-${scale}`))
        const isIn = (text: string) => {
          const value = exactly(text)
          const at = Math.max(value.scale, scale)
          return (
            order(text.replace("-", ""), largestMultiple(exactly(step))) <= 0 &&
            (low === null || order(text, low) >= 0) &&
            (high === null || order(text, high) <= 0) &&
            atScale(value, at, "up") % atScale({ digits, scale }, at, "up") === 0n
          )
        }
        const texts = [...more, ...multiples.map(textOf), ...(high === null ? [] : around(high))]
        const found = accepted(schema, texts)
        for (const [i, text] of texts.entries())
          expect(found?.[i] ?? false, `${text} of ${JSON.stringify(schema)}`).toBe(isIn(text))
      },
    ),
    { numRuns: runs(800) },
  )
})

test("the name of an inherited member is no format", () => {
  const { keywords } = analyseSchema({ type: "number", format: "constructor" })
  expect(keywords.find(({ keyword }) => keyword === "format")?.verdict).toBe("annotation")
  check({ not: { type: "number", format: "constructor" } }, ['"a"'], ["5"])
  check({ not: { type: "number", format: "int32" } }, ['"a"', "2147483648"], ["5"])
})
