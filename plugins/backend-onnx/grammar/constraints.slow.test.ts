import { afterAll, expect, test } from "vitest"
import type { Constraint, Constraints, Grammar } from "./constraint.ts"
import { makeConstraints } from "./constraints.ts"
import { byteVocabulary, grammarVocabulary, isAllowed } from "./grammar-vocabulary.ts"
import { inlineConstraints } from "./testing/inline-constraints.ts"
import { closingOf } from "./testing/walk.ts"

const end = 256
const inThread = makeConstraints(byteVocabulary())
afterAll(() => inThread.close())
const kinds: readonly [string, Constraints][] = [
  ["inline", inlineConstraints(byteVocabulary())],
  ["in a thread", inThread],
]

const write = (constraint: Constraint, text: string): void => {
  for (const byte of Buffer.from(text)) constraint.accept(byte)
}
const opened = (constraints: Constraints, grammar: Grammar, text = ""): Constraint => {
  const constraint = constraints.open(grammar)
  write(constraint, text)
  return constraint
}
const schema = (json: unknown): Grammar => ({ kind: "schema", schema: json })
const next = (constraint: Constraint): string => {
  const mask = constraint.mask()
  const bytes = Array.from({ length: end }, (_, byte) => byte).filter((byte) =>
    isAllowed(mask, byte),
  )
  return String.fromCharCode(...bytes) + (isAllowed(mask, end) ? "$" : "")
}

const person = schema({
  type: "object",
  properties: { name: { enum: ["Ada", "Alan"] }, age: { type: "integer" } },
  required: ["name"],
  additionalProperties: false,
})

for (const [name, constraints] of kinds) {
  test(`${name}: masks follow the schema, token by token`, () => {
    const constraint = opened(constraints, person)
    expect(next(constraint)).toBe("{")
    write(constraint, '{"name":"A')
    expect(next(constraint)).toBe("dl")
    expect(constraint.isComplete()).toBe(false)
    write(constraint, 'da"')
    expect(next(constraint)).toBe("\n ,}")
    write(constraint, "}")
    expect(next(constraint)).toBe("$")
    expect(constraint.isComplete()).toBe(true)
    constraint.accept(end)
    expect(next(constraint)).toBe("$")
    constraint.release()
  })

  test(`${name}: a grammar in Lark holds documents`, () => {
    const constraint = opened(
      constraints,
      { kind: "lark", lark: 'start: "<call>" doc "</call>"\ndoc: %json {"type":"boolean"}' },
      "<call>t",
    )
    expect(next(constraint)).toBe("r")
    write(constraint, "rue</call>")
    expect(constraint.isComplete()).toBe(true)
  })

  test(`${name}: tokens are taken back, and another way is taken`, () => {
    const constraint = opened(constraints, person, '{"name":"Ada","a')
    expect(next(constraint)).toBe("g")
    constraint.rollback('da","a'.length)
    expect(next(constraint)).toBe("dl")
    write(constraint, "lan")
    constraint.rollback(1)
    expect(next(constraint)).toBe("n")
    write(constraint, 'n"}')
    expect(constraint.isComplete()).toBe(true)
    constraint.rollback(1)
    expect(constraint.isComplete()).toBe(false)
    expect(constraint.guardedTokens()).toBeUndefined()
    constraint.release()
  })

  test(`${name}: the way to an end leads to an end, and moves nothing`, () => {
    const constraint = opened(constraints, person, '{"name"')
    const way = closingOf(constraint, 100)!
    expect(Buffer.from(way).toString()).toBe(':"Ada"}')
    expect(closingOf(constraint, way.length - 1)).toBeUndefined()
    expect(next(constraint)).toBe("\n :")
    for (const token of way) constraint.accept(token)
    expect(constraint.isComplete()).toBe(true)
    expect(closingOf(constraint, 0)).toEqual([])
  })

  test(`${name}: a way that just fits is found, where a straighter one is longer`, () => {
    const constraint = opened(constraints, {
      kind: "schema",
      schema: { type: "array", minItems: 1 },
    })
    expect(closingOf(constraint, 2)).toBeUndefined()
    expect(closingOf(constraint, 3)).toHaveLength(3)
    const long = opened(constraints, {
      kind: "schema",
      schema: {
        anyOf: [
          { type: "array", items: { const: 1 }, minItems: 9 },
          { type: "string", pattern: "^x{17}$" },
        ],
      },
    })
    expect(closingOf(long, 19)).toHaveLength(19)
  })

  test(`${name}: a grammar that does not compile, and a token that is not allowed, fail with a text`, () => {
    expect(() => opened(constraints, { kind: "lark", lark: "start: nothing" }).mask()).toThrow(
      /nothing/,
    )
    expect(() => opened(constraints, person, "[").mask()).toThrow(/does not allow/)
    expect(next(opened(constraints, person))).toBe("{")
  })
}

test("every end token is allowed where the text may end, and none of them is text", () => {
  const constraints = inlineConstraints(
    grammarVocabulary(
      300,
      (id) => (id < 256 ? Uint8Array.of(id) : Buffer.from(id < 290 ? "}" : "")),
      [256, 299],
    ),
  )
  const constraint = opened(constraints, person, '{"name":"Ada"')
  const allowed = (id: number) => isAllowed(constraint.mask(), id)
  expect([256, 299, 257, 0x7d, 295].map(allowed)).toEqual([false, false, true, true, false])
  constraint.accept(257)
  expect([256, 299, 257, 0x7d, 295].map(allowed)).toEqual([true, true, false, false, false])
})

test("answers side by side don't disturb each other", () => {
  const a = opened(inThread, person, '{"na')
  const b = opened(inThread, person, '{"name":"Al')
  a.release()
  expect(next(b)).toBe("a")
  const c = opened(inThread, schema({ type: "boolean" }), "f")
  write(b, "an")
  expect([next(c), next(b)]).toEqual(["a", '"'])
})

/** Writes an honest document token by token, each mask awaited. */
const writeWhole = (constraint: Constraint): void => {
  for (const byte of Buffer.from('{"name": "Alan", "age": 1234567890}')) {
    expect(isAllowed(constraint.mask(), byte)).toBe(true)
    constraint.accept(byte)
  }
  expect(constraint.isComplete()).toBe(true)
}

test("nobody waits for somebody else's search for an end", () => {
  const hostile = inThread.open(schema({ type: "array", minItems: 999 }))
  const honest = opened(inThread, person)
  hostile.mask()
  hostile.seekClosing(900)
  expect(hostile.isReady()).toBe(false)
  writeWhole(honest)
  // the search computes thousands of masks, the honest answer a few dozen
  expect(hostile.isReady()).toBe(false)
  expect(hostile.closing()).toBeUndefined()
  expect(hostile.isReady()).toBe(true)
  expect(closingOf(hostile, 3_500)).toHaveLength(1_999)
  hostile.release()
  honest.release()
})

test("a search begins where the answer is, and may be left alone", () => {
  const searching = inThread.open(person)
  write(searching, '{"na')
  expect(Buffer.from(closingOf(searching, 100)!).toString()).toBe('me":"Ada"}')
  searching.accept("m".charCodeAt(0))
  searching.seekClosing(100)
  searching.rollback(2)
  searching.seekClosing(100)
  expect(Buffer.from(searching.closing()!).toString()).toBe('ame":"Ada"}')
  const gone = inThread.open(person)
  gone.seekClosing(100)
  gone.release()
  expect(next(searching)).toBe("a")
  searching.release()
})

test("nobody waits for somebody else's grammar to be compiled", () => {
  const honest = opened(inThread, person)
  honest.mask()
  const hostile = inThread.open(
    schema({ enum: Array.from({ length: 20_000 }, (_, i) => `value number ${i}`) }),
  )
  writeWhole(honest)
  expect(hostile.isReady()).toBe(false)
  expect(next(hostile)).toBe('"')
  hostile.release()
})

test("a thread that is gone fails its answers, and the next answer starts another", {
  timeout: 60_000,
}, async () => {
  const constraints = makeConstraints(byteVocabulary())
  const lost = opened(constraints, person)
  expect(next(lost)).toBe("{")
  await constraints.close()
  expect(() => lost.mask()).toThrow(/does not answer/)
  lost.release()
  expect(next(opened(constraints, person))).toBe("{")
  await constraints.close()
})

test("a grammar that brings the engine of the masks down takes nothing else along", () => {
  // its error text is cut in the middle of a character
  const deadly: Grammar = {
    kind: "lark",
    lark: `start: %json {"type":"string","minLength":"${"é".repeat(200)}"}`,
  }
  for (const constraints of [inThread, inlineConstraints(byteVocabulary())]) {
    const before = opened(constraints, person, '{"name":"Al')
    for (let n = 0; n < 2; n++)
      expect(() => opened(constraints, deadly).mask()).toThrow(/can't be run/)
    expect(next(before)).toBe("a")
    write(before, 'an"')
    expect(next(before)).toBe("\n ,}")
    expect(next(opened(constraints, person))).toBe("{")
    before.release()
  }
})
