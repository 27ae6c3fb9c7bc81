import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { type SyntaxName, syntaxes, writeCalls } from "../chat-format/call-syntax.ts"
import { type AnswerForm, AnswerParser } from "./answer-parser.ts"
import { answerForms, difference, inPieces, randomCase, shrunk } from "./testing/split-cases.ts"
import { wholeAnswer } from "./testing/whole-answer.ts"

const formOf = (
  syntax: SyntaxName,
  more: Partial<AnswerForm> & { readonly only?: boolean } = {},
): AnswerForm => {
  const { only = false, ...rest } = more
  return {
    reasoning: "none",
    calls: { syntax: syntaxes[syntax], tools: new Set(["weather", "time"]), only },
    callId: () => "call_1",
    ...rest,
  }
}
const read = (form: AnswerForm, text: string, isCut = false) =>
  inPieces({
    form,
    text,
    cuts: Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => at + 1),
    isCut,
  })
const weather = {
  name: "weather",
  arguments: '{"city": "Yogya\\"}{karta", "days": [1, {"a": "]"}]}',
}
const time = { name: "time", arguments: "{}" }

test("random answers come out the same in one, in pieces, and by another parser", () => {
  fc.assert(
    fc.property(fc.nat(2 ** 30), (seed) => {
      const split = randomCase(seed)
      const found = difference(split)
      if (found) expect({ ...shrunk(split), form: undefined }).toBe(found)
    }),
    { numRuns: runs(3_000) },
  )
})

test("no event ends in half a character", () => {
  const text = `\u{1f600} ${writeCalls(syntaxes.hermes, [{ name: "weather", arguments: '{"city": "\u{1f600}\u{1f601}"}' }])}`
  const parser = new AnswerParser(formOf("hermes"))
  for (const unit of text.split(""))
    for (const { event } of parser.push(unit))
      expect(
        (event.type === "toolCall" ? event.argumentsDelta : event.text).match(/\p{Surrogate}/u),
      ).toBeNull()
})

test("any text at all comes out the same, and none of it is lost where nothing is markup", () => {
  const units = fc
    .array(
      fc.oneof(
        fc.constantFrom(
          "<",
          "t",
          "<tool_call>",
          "{",
          "}",
          '"',
          "\ud83d",
          "\ude00",
          " ",
          "</think>",
        ),
        fc.string({ unit: "binary" }),
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join(""))
  fc.assert(
    fc.property(
      units,
      fc.constantFrom(...Object.keys(answerForms)),
      fc.array(fc.nat(30)),
      fc.boolean(),
      (text, formName, at, isCut) => {
        const form = answerForms[formName]!
        const cuts = [...new Set(at)]
          .filter((cut) => cut > 0 && cut < text.length)
          .sort((a, b) => a - b)
        expect(difference({ form, formName, text, cuts, isCut })).toBeUndefined()
        if (form.reasoning === "none" && !text.includes("<tool_call>") && !isCut)
          expect(inPieces({ form, text, cuts, isCut }).text).toBe(text)
      },
    ),
    { numRuns: runs(1_000) },
  )
})

test("the comparison finds a parser that looks at pieces", () => {
  const form = formOf("hermes")
  const text = writeCalls(syntaxes.hermes, [weather])
  const forgetful = new AnswerParser(form)
  const pieces = [text.slice(0, 5), text.slice(5)].flatMap((piece) => [
    ...forgetful.push(piece),
    ...new AnswerParser(form).push(piece),
  ])
  expect(pieces.filter(({ event }) => event.type === "text").length).toBeGreaterThan(0)
  expect(wholeAnswer(form, text, false)).toEqual({ reasoning: "", text: "", calls: [weather] })
})

describe.each(Object.keys(syntaxes) as SyntaxName[])("%s", (name) => {
  const text = writeCalls(syntaxes[name], [weather, time, weather])
  test("calls, with their arguments to the letter", () => {
    expect(read(formOf(name), text)).toEqual({
      reasoning: "",
      text: "",
      calls: [weather, time, weather],
    })
  })
  test("whatever white space is between", () => {
    const spaced = text.replaceAll('"name": ', ' "name"\n:  ').replaceAll('", "', '" ,\n "')
    expect(read(formOf(name), spaced).calls.map((call) => call.name)).toEqual([
      "weather",
      "time",
      "weather",
    ])
  })
  test("what only looks like calls is text", () => {
    for (const wrong of [
      text.replace("weather", "wether"),
      text.replace('"name"', '"nam"'),
      text.replace("{", "("),
    ]) {
      const { text: said, calls } = read(formOf(name), wrong)
      expect(said.slice(0, 8)).toBe(wrong.slice(0, 8))
      expect(calls.length).toBeLessThan(3)
    }
  })
  test("are not looked for where there can't be any", () => {
    expect(read({ reasoning: "none", callId: () => "" }, text)).toEqual({
      reasoning: "",
      text,
      calls: [],
    })
  })
  test("a cut call keeps what there is of its arguments; a cut head is dropped, or text where the model stopped by itself", () => {
    const half = text.slice(0, text.indexOf("Yogya"))
    expect(read(formOf(name), half, true).calls).toEqual([
      { name: "weather", arguments: '{"city": "' },
    ])
    const head = text.slice(0, text.indexOf("weather") + 3)
    expect(read(formOf(name), head, true)).toEqual({ reasoning: "", text: "", calls: [] })
    expect(read(formOf(name), head, false)).toEqual({ reasoning: "", text: head, calls: [] })
  })
})

test("text before calls is text, without the white space that leads to them", () => {
  expect(read(formOf("hermes"), `Let me see.\n\n${writeCalls(syntaxes.hermes, [time])}\n`)).toEqual(
    { reasoning: "", text: "Let me see.", calls: [time] },
  )
})

describe("reasoning", () => {
  test("is separated where the prompt opened it, and where the model does", () => {
    for (const [form, text] of [
      [formOf("hermes", { reasoning: "begun" }), "\nHm.\n  Well.\n</think>\n\nHello"],
      [formOf("hermes", { reasoning: "possible" }), "<think>\nHm.\n  Well.\n</think>\n\nHello"],
    ] as const)
      expect(read(form, text)).toEqual({ reasoning: "Hm.\n  Well.", text: "Hello", calls: [] })
    expect(read(formOf("hermes", { reasoning: "possible" }), " Hello <think>")).toEqual({
      reasoning: "",
      text: " Hello <think>",
      calls: [],
    })
  })
  test("may end in calls, and holds none", () => {
    const call = writeCalls(syntaxes.llama, [time])
    expect(read(formOf("llama", { reasoning: "begun" }), `${call}</think>\n${call}`)).toEqual({
      reasoning: call,
      text: "",
      calls: [time],
    })
  })
  test("may be cut", () => {
    expect(read(formOf("hermes", { reasoning: "begun" }), "Hm</thi", true)).toEqual({
      reasoning: "Hm</thi",
      text: "",
      calls: [],
    })
  })
})

test("every call begins with its id and name, and its arguments come as they are written", () => {
  const parser = new AnswerParser(formOf("hermes"))
  const events = [
    '<tool_call>\n{"name": "wea',
    'ther", "arguments": {"ci',
    'ty": "J"',
    "}}\n</tool_call>",
  ].map((piece) => parser.push(piece).map(({ event }) => event))
  expect(events).toEqual([
    [],
    [
      { type: "toolCall", index: 0, id: "call_1", name: "weather", argumentsDelta: "" },
      { type: "toolCall", index: 0, argumentsDelta: '{"ci' },
    ],
    [{ type: "toolCall", index: 0, argumentsDelta: 'ty": "J"' }],
    [{ type: "toolCall", index: 0, argumentsDelta: "}" }],
  ])
  expect(parser.end(false)).toEqual([])
})
