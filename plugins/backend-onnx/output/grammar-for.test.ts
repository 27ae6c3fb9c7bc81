import { describe, expect, test } from "vitest"
import { type SyntaxName, syntaxes, writeCalls } from "../chat-format/call-syntax.ts"
import { grammarVocabulary, isAllowed } from "../grammar/grammar-vocabulary.ts"
import { inlineConstraints } from "../grammar/testing/inline-constraints.ts"
import { type ConstrainedAnswer, grammarFor, mostCalls, type Wanted } from "./grammar-for.ts"

// a token for every byte, the end token, and control tokens, which have no bytes
const end = 256
const markers = {
  "<tool_call>": 257,
  "</tool_call>": 258,
  "[TOOL_CALLS]": 259,
  "<|python_tag|>": 260,
}
const constraints = inlineConstraints(
  grammarVocabulary(261, (id) => (id < end ? Uint8Array.of(id) : new Uint8Array()), [end]),
)

const tokensOf = (text: string, marked: Readonly<Record<string, number>>): readonly number[] =>
  text
    .split(/(<\/?tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>)/)
    .flatMap((piece) => (Object.hasOwn(marked, piece) ? [marked[piece]!] : [...Buffer.from(piece)]))

/**
 * How much of a text the grammar accepts: `whole` when it may end there, `begun` when it may go on,
 * otherwise the accepted prefix.
 */
const verdict = (
  constrained: ConstrainedAnswer | undefined,
  text: string,
  marked: Readonly<Record<string, number>> = {},
): string => {
  const constraint = constraints.open(constrained!.grammar)
  const tokens = tokensOf(text, marked)
  for (const [at, token] of tokens.entries()) {
    if (!isAllowed(constraint.mask(), token))
      return `up to ${JSON.stringify(Buffer.from(tokens.slice(0, at).filter((id) => id < end)).toString())}`
    constraint.accept(token)
  }
  return constraint.isComplete() ? "whole" : "begun"
}

const weather = {
  name: "weather",
  schema: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city"],
    additionalProperties: false,
  },
}
const time = {
  name: "time",
  schema: { type: "object", properties: {}, additionalProperties: false },
}
const tools = [weather, time]
const constrainAnswer = (of: Partial<Wanted>, syntax: SyntaxName = "hermes") =>
  grammarFor({ syntax, markers: {}, forbidsCalls: false, ...of })
const one = { name: "weather", arguments: '{"city": "Jakarta"}' }
const two = { name: "time", arguments: "{}" }

describe.each(Object.keys(syntaxes) as SyntaxName[])("%s", (name) => {
  const syntax = syntaxes[name]
  const written = (...calls: (typeof one)[]) => writeCalls(syntax, calls)
  const auto = constrainAnswer({ calls: { tools, isRequired: false, most: mostCalls } }, name)
  const required = constrainAnswer({ calls: { tools, isRequired: true, most: mostCalls } }, name)

  test("auto: free text, or calls that keep to their schemas", () => {
    for (const text of [
      "",
      "Hello",
      "2 < 3",
      "a {b}",
      written(one),
      written(one, two),
      written(two, two, one),
    ])
      expect([text, verdict(auto, text)]).toEqual([text, "whole"])
    for (const wrong of [
      { ...one, name: "wether" },
      { ...one, arguments: "{}" },
      { ...one, arguments: '{"city": 1}' },
      { ...two, arguments: '{"a": 1}' },
    ])
      expect([wrong, verdict(auto, written(wrong))]).toEqual([
        wrong,
        expect.stringContaining("up to"),
      ])
    expect(verdict(auto, `${written(one)} and more`)).toMatch(/up to/)
    // without a trigger a call is text
    expect(verdict(auto, `Let me see.\n${written(one)}`)).toBe("whole")
  })

  test("auto: no text can begin a call and be none", () => {
    const begun = syntax.trigger ? `${syntax.trigger}x` : "{x"
    expect(verdict(auto, begun)).toMatch(/up to/)
    expect(verdict(auto, syntax.trigger ?? " \n{")).not.toBe("whole")
  })

  test("required: nothing but calls", () => {
    for (const text of [written(one), written(one, two), `\n\n${written(two)}`])
      expect(verdict(required, text)).toBe("whole")
    for (const text of ["", syntax.trigger ?? "{"]) expect(verdict(required, text)).toBe("begun")
    expect(verdict(required, "Hello")).toBe('up to ""')
  })

  test("at most one call, and at most as many as there may be", () => {
    const single = constrainAnswer({ calls: { tools, isRequired: false, most: 1 } }, name)
    expect(verdict(single, written(one))).toBe("whole")
    expect(verdict(single, written(one, two))).toMatch(/up to/)
    expect(verdict(auto, written(...Array.from({ length: mostCalls }, () => two)))).toBe("whole")
    expect(verdict(auto, written(...Array.from({ length: mostCalls + 1 }, () => two)))).toMatch(
      /up to/,
    )
  })

  test("calls or a document", () => {
    const both = constrainAnswer(
      {
        calls: { tools, isRequired: false, most: mostCalls },
        document: {
          schema: {},
          enforced: {
            type: "object",
            properties: { a: { type: "integer" } },
            required: ["a"],
            additionalProperties: false,
          },
        },
      },
      name,
    )
    expect(verdict(both, '{"a": 1}')).toBe("whole")
    expect(verdict(both, writeCalls(both!.syntax!, [one, two]))).toBe("whole")
    expect(verdict(both, "Hello")).toBe('up to ""')
    expect(both!.syntax!.trigger).toBeDefined()
  })

  test("control tokens stand for themselves, and can't be spelled", () => {
    const marked = constrainAnswer(
      { calls: { tools, isRequired: false, most: mostCalls }, markers },
      name,
    )
    const spelled = syntax.trigger ?? syntax.prefix!
    const text =
      spelled === syntax.prefix ? `${syntax.prefix}${written(one, two)}` : written(one, two)
    expect(verdict(marked, text, markers)).toBe("whole")
    expect(verdict(marked, `${spelled}\n`, {})).toMatch(/up to/)
    expect(verdict(marked, "Hello", markers)).toBe("whole")
    const needed = constrainAnswer({ calls: { tools, isRequired: true, most: 1 }, markers }, name)
    expect(verdict(needed, written(one), markers)).toBe("whole")
  })

  const set = { type: "array", items: { type: ["integer", "string"] } }
  const pick = (unique: object) => ({
    type: "object",
    properties: { of: { ...set, ...unique } },
    required: ["of"],
    additionalProperties: false,
  })
  const picked = (...lists: string[]) =>
    lists.map((list) => ({ name: "pick", arguments: `{"of": ${list}}` }))
  const checked = {
    name: "pick",
    schema: pick({}),
    checkedBy: pick({ uniqueItems: true }),
  }

  test("what is checked on finished values is so in each call, and in no other text", () => {
    for (const isRequired of [false, true])
      for (const marked of [{}, markers]) {
        const calls = { tools: [checked, ...tools], isRequired, most: mostCalls }
        const constrained = constrainAnswer({ calls, markers: marked }, name)
        const of = (...lists: string[]) =>
          verdict(constrained, written(...picked(...lists)), marked)
        expect(of("[1, 2]", "[2, 1]")).toBe("whole")
        expect(of("[1, 1]")).toMatch(/\[1, 1"$/)
        expect(of("[]", '["a"]', "[3, 4]", '["a", "a"]')).toMatch(/a\W+a\W+$/)
        if (!isRequired && marked !== markers)
          expect(verdict(constrained, `[1, 1].\n${written(...picked("[1]"))}`)).toBe("whole")
      }
  })

  test("what looks like a call within another document is none", () => {
    const inner = '{"x": {"name": "pick", "arguments": {"of": [1, 1]}, "y": "parameters"}}'
    const plan = { name: "plan", arguments: inner.replace("arguments", syntax.argumentsKey) }
    for (const isRequired of [false, true]) {
      const open = { name: "plan", schema: { type: "object" } }
      const calls = { tools: [checked, open], isRequired, most: mostCalls }
      const constrained = constrainAnswer({ calls }, name)
      expect(verdict(constrained, written(plan))).toBe("whole")
      expect(verdict(constrained, written(plan, ...picked("[1, 1]")))).toMatch(/\[1, 1"$/)
    }
    const calls = { tools: [checked], isRequired: false, most: 1 }
    const document = { schema: {}, enforced: {} }
    const constrained = constrainAnswer({ calls, document }, name)
    const trigger = constrained!.syntax!.trigger
    expect(verdict(constrained, `["${trigger}", ${plan.arguments}]`)).toBe("whole")
  })

  test("what is checked on finished values is so in a document beside calls", () => {
    for (const marked of [{}, markers]) {
      const constrained = constrainAnswer(
        {
          calls: { tools: [checked], isRequired: false, most: 1 },
          document: { schema: { ...set, uniqueItems: true }, enforced: set, isChecked: true },
          markers: marked,
        },
        name,
      )
      const own = constrained!.syntax!
      const trigger = JSON.stringify(own.trigger)
      expect(verdict(constrained, "[1, 2]", marked)).toBe("whole")
      expect(verdict(constrained, "[1, 1]", marked)).toBe('up to "[1, 1"')
      if (marked !== markers) expect(verdict(constrained, `[${trigger}, 1, 1]`)).toMatch(/, 1, 1"$/)
      expect(verdict(constrained, writeCalls(own, picked("[1, 2]")), marked)).toBe("whole")
      expect(verdict(constrained, writeCalls(own, picked("[1, 1]")), marked)).toMatch(/\[1, 1"$/)
    }
  })
})

test("without a trigger, text that quotes a call is free", () => {
  const tags = { type: "array", items: { type: "string" } }
  const of = (more: object) => ({
    type: "object",
    properties: { tags: { ...tags, ...more } },
    additionalProperties: false,
  })
  const tag = { name: "tag", schema: of({}), checkedBy: of({ uniqueItems: true }) }
  const calls = { tools: [tag], isRequired: false, most: mostCalls }
  const call = (list: string) => `{"name": "tag", "parameters": {"tags": ${list}}}`
  for (const marked of [{}, markers]) {
    const constrained = constrainAnswer({ calls, markers: marked }, "llama")
    const of = (text: string) => verdict(constrained, text, marked)
    for (const list of ['["C:\\dir"]', '["a", "a"]'])
      for (const before of ["Use ", "\n Use\n", "<", "<|python_ {"])
        expect(of(`${before}${call(list)} please`)).toBe("whole")
    expect(of(call('["a", "b"]'))).toBe("whole")
    for (const prefix of ["", "<|python_tag|>"])
      expect(of(prefix + call('["a", "a"]'))).toMatch(/a\W+a\W+$/)
  }
})

test("none: text without the trigger of calls", () => {
  const none = constrainAnswer({ forbidsCalls: true })
  expect(verdict(none, "Hello <tool")).toBe("whole")
  expect(verdict(none, "Hello <tool_call>")).toBe('up to "Hello <tool_call"')
  expect(constrainAnswer({ forbidsCalls: true }, "llama")).toBeUndefined()
  expect(constrainAnswer({})).toBeUndefined()
})

test("a document alone is a schema", () => {
  expect(
    constrainAnswer({ document: { schema: { type: "object" }, enforced: {} }, forbidsCalls: true }),
  ).toEqual({ grammar: { kind: "schema", schema: { type: "object" } } })
})

test("schemas with references of their own are held beside each other", () => {
  const tree = {
    name: "tree",
    schema: {
      type: "object",
      $defs: {
        node: {
          type: "object",
          properties: { next: { $ref: "#/$defs/node" } },
          additionalProperties: false,
        },
      },
      properties: { root: { $ref: "#/$defs/node" } },
      required: ["root"],
      additionalProperties: false,
    },
  }
  const constrained = constrainAnswer({
    calls: { tools: [tree, weather], isRequired: true, most: 1 },
  })
  expect(
    verdict(
      constrained,
      writeCalls(syntaxes.hermes, [
        { name: "tree", arguments: '{"root": {"next": {"next": {}}}}' },
      ]),
    ),
  ).toBe("whole")
  expect(
    verdict(
      constrained,
      writeCalls(syntaxes.hermes, [{ name: "tree", arguments: '{"root": {"nxt": {}}}' }]),
    ),
  ).toMatch(/up to/)
})
