import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { type Automaton, AutomatonConstraints, matches } from "./testing/automaton.ts"
import {
  anything,
  endOfText,
  endOfTurn,
  letters,
  openLetters as open,
  abasRule as rule,
  vocabulary,
} from "./testing/letters-model.ts"

const automaton: fc.Arbitrary<Automaton> = fc.integer({ min: 1, max: 6 }).chain((states) => {
  const state = fc.nat(states - 1)
  return fc.record({
    moves: fc.uniqueArray(fc.tuple(state, fc.constantFrom(...letters), state), {
      maxLength: 16,
      selector: ([from, letter]) => `${from}${letter}`,
    }),
    accepting: fc.uniqueArray(state, { maxLength: 3 }),
  })
})
const sampler = fc.record({
  temperature: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 2, noNaN: true })),
  topP: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
  frequencyPenalty: fc.double({ min: -2, max: 2, noNaN: true }),
  presencePenalty: fc.double({ min: -2, max: 2, noNaN: true }),
  logitBias: fc.array(fc.tuple(fc.nat(vocabulary - 1), fc.integer({ min: -100, max: 100 })), {
    maxLength: 4,
  }),
})
const request = fc.record({
  automaton,
  sampler,
  seed: fc.nat(),
  maxTokens: fc.integer({ min: 1, max: 40 }),
  after: fc.constantFrom(undefined, ">", "<a>", "ab>"),
  closeOnLength: fc.boolean(),
  topLogprobs: fc.constantFrom(undefined, 2),
  stop: fc.constantFrom([], ["a"], ['"', "bc"]),
})

/**
 * A completion exists where the whole answer is constrained, and is at most as long as the
 * automaton's shortest text.
 */
const shortestLength = (of: Automaton): number => {
  let states = [0]
  for (let length = 0; length <= 12; length++) {
    if (states.some((state) => of.accepting.includes(state))) return length
    states = of.moves.filter(([from]) => states.includes(from)).map(([, , to]) => to)
  }
  return Number.POSITIVE_INFINITY
}

test("whatever the grammar, the model, the settings and the budget: only what is allowed, whole where it says so, the same for the same seed, and nothing left open", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 6 }), async (requests) => {
      const model = open()
      const askOf = ({
        automaton,
        after,
        closeOnLength,
        topLogprobs,
        ...rest
      }: (typeof requests)[number]) =>
        ({
          ...rest,
          ...(topLogprobs && { topLogprobs }),
          grammar: {
            grammar: AutomatonConstraints.grammar(automaton),
            closeOnLength,
            ...(after && { after }),
          },
        }) as const
      const answers = await Promise.all(requests.map((of) => model.ask(askOf(of))))
      for (const [i, { text, reason, tokens: produced, end }] of answers.entries()) {
        const { automaton, after = "", maxTokens, closeOnLength } = requests[i]!
        const from = after ? text.indexOf(after) : 0
        const document = from < 0 ? undefined : text.slice(from + after.length)
        if (end !== "done") {
          // a dead end of the automaton is not the engine's fault
          expect(end).toBe("the grammar allows no token")
          continue
        }
        expect(produced).toBeLessThanOrEqual(maxTokens)
        if (document !== undefined && document !== "")
          expect(matches({ ...automaton, accepting: [0, 1, 2, 3, 4, 5] }, document)).toBe(true)
        if (reason === "stop")
          expect(document !== undefined && matches(automaton, document)).toBe(true)
        if (closeOnLength && shortestLength(automaton) + after.length <= maxTokens)
          expect(document !== undefined && matches(automaton, document)).toBe(true)
        expect((await model.ask(askOf(requests[i]!))).text).toBe(text)
      }
      expect(model.watched.open).toBe(0)
    }),
    { numRuns: runs(200) },
  )
}, 30_000)

describe("the end", () => {
  test("is `stop` as soon as nothing can follow, without one more step", async () => {
    const model = open({ like: { 8: 50, 3: 20 } })
    const said = await model.ask({ grammar: rule, maxTokens: 30 })
    expect(said).toMatchObject({ text: 'a"', reason: "stop", tokens: 2 })
    // one pass for the prompt, one for the second token
    expect(model.steps()).toBe(2)
  })

  test("is `stop` where the last token that may be written completes the document, and `length` where it does not", async () => {
    const model = open({ like: { 8: 50, 3: 20 } })
    expect(await model.ask({ grammar: rule, maxTokens: 2 })).toMatchObject({
      text: 'a"',
      reason: "stop",
    })
    expect(await model.ask({ grammar: rule, maxTokens: 1 })).toMatchObject({
      text: "a",
      reason: "length",
    })
  })

  test("may be chosen by the model where the grammar lets it, and nowhere else", async () => {
    const model = open({ like: { [endOfTurn]: 50 } })
    expect(
      await model.ask({ grammar: { ...rule, grammar: AutomatonConstraints.grammar(anything) } }),
    ).toMatchObject({ text: "", reason: "stop", tokens: 1 })
    const said = await model.ask({ grammar: rule, maxTokens: 200 })
    expect(said.reason).toBe("stop")
    expect(said.text).toMatch(/^a(ba)*"$/)
  })

  test("does not come before the text that the grammar waits for", async () => {
    const model = open({ like: { [endOfTurn]: 50, [endOfText]: 50 } })
    const said = await model.ask({ grammar: { ...rule, after: "<a>" }, maxTokens: 400 })
    expect(said.reason).toBe("stop")
    expect(said.text).toMatch(/<a>a(ba)*"$/)
  })
})

describe("closing on length", () => {
  const closing = { ...rule, closeOnLength: true }
  // the model never wants to end
  const endless = { like: { 8: -50, 14: -50, 18: -50 } }

  test.each([2, 3, 4, 5, 20, 300, 601])(
    "makes the document whole within %i tokens, and says that it was cut",
    async (maxTokens) => {
      const said = await open(endless).ask({ grammar: closing, maxTokens })
      expect(said.reason).toBe("length")
      expect(said.text).toMatch(/^a(ba)*"$/)
      expect(said.tokens).toBeLessThanOrEqual(maxTokens)
      expect(said.tokens).toBeGreaterThan(maxTokens - 3)
    },
  )

  test("ends the free text in time, too", async () => {
    const said = await open({ like: { 7: -50, 11: -50, 15: -50, 16: -50, 17: -50 } }).ask({
      grammar: { ...closing, after: "<a>" },
      maxTokens: 20,
    })
    expect(said).toMatchObject({ reason: "length", tokens: 20 })
    expect(said.text).toMatch(/<a>a"$/)
  })

  test("does what it can where the budget is too small from the beginning", async () => {
    expect(await open(endless).ask({ grammar: closing, maxTokens: 1 })).toMatchObject({
      text: "a",
      reason: "length",
    })
  })

  test("ends where the document is whole already and what the model wants would not fit any more", async () => {
    const more: Automaton = {
      moves: [..."abbb"].map((letter, at) => [at, letter, at + 1] as const),
      accepting: [1, 4],
    }
    const ask = {
      grammar: { grammar: AutomatonConstraints.grammar(more), closeOnLength: true },
      sampler: { temperature: 0, topP: 1, frequencyPenalty: 0, presencePenalty: 0, logitBias: [] },
    }
    const model = open({ like: { 4: 50 } })
    expect(await model.ask({ ...ask, maxTokens: 3 })).toMatchObject({ text: "a", reason: "length" })
    expect(await model.ask({ ...ask, maxTokens: 4 })).toMatchObject({ text: "abbb" })
  })

  test("asks the model for the closing tokens only where their log-probabilities are wanted", async () => {
    const model = open({ ...endless, speculation: false })
    const long: Automaton = {
      moves: [...'aaaaaaaaa"'].map((letter, at) => [at, letter, at + 1] as const),
      accepting: [10],
    }
    const ask = {
      grammar: { grammar: AutomatonConstraints.grammar(long), closeOnLength: true },
      maxTokens: 10,
    }
    expect(await model.ask(ask)).toMatchObject({ text: 'aaaaaaaaa"', reason: "length" })
    expect(model.steps()).toBe(1)
    const detailed = await model.ask({ ...ask, topLogprobs: 1 })
    expect(
      detailed.events.flatMap((event) => ("details" in event ? (event.details ?? []) : [])),
    ).toHaveLength(10)
    expect(model.steps()).toBe(11)
  })
})

test("control tokens that are part of an answer are text to the grammar, to stop strings and to the reader", async () => {
  const markers = { "</think>": 2 }
  const grammarAfter = { ...rule, after: "</think>" }
  const model = open({ like: { 2: 4 } })
  for (let seed = 0; seed < 10; seed++) {
    const said = await model.ask({ grammar: grammarAfter, markers, seed, maxTokens: 400 })
    expect(said.reason).toBe("stop")
    expect(said.text).toMatch(/^[abc<>"]*<\/think>a(ba)*"$/)
  }
  const hurried = await open({ like: { 2: -50 } }).ask({
    grammar: { ...grammarAfter, closeOnLength: true },
    markers,
    maxTokens: 12,
  })
  expect(hurried.text).toMatch(/<\/think>a"$/)
  expect((await model.ask({ markers, stop: ["nk>"], maxTokens: 400 })).text).toMatch(/<\/thi$/)
})

describe("stop strings", () => {
  test("don't cut a document that the grammar rules", async () => {
    const model = open({ like: { 8: 50, 3: 20 } })
    expect(await model.ask({ grammar: rule, stop: ["a"] })).toMatchObject({
      text: 'a"',
      reason: "stop",
    })
    expect(
      (
        await open().ask({
          grammar: { ...rule, after: ">" },
          stop: [">", "a", "b", "c"],
          maxTokens: 400,
        })
      ).text,
    ).toMatch(/>a(ba)*"$/)
  })

  test("cut free text until what they count until", async () => {
    const model = open({ like: { [endOfTurn]: -50, [endOfText]: -50 } })
    const free = {
      grammar: AutomatonConstraints.grammar(anything),
      closeOnLength: false,
      stopUntil: "<",
    }
    for (let seed = 0; seed < 20; seed++) {
      const whole = await model.ask({ grammar: free, seed, maxTokens: 40 })
      const cut = await model.ask({ grammar: free, seed, maxTokens: 40, stop: ["c"] })
      const at = whole.text.indexOf("c")
      expect(cut.text).toBe(
        at >= 0 && !whole.text.slice(0, at).includes("<") ? whole.text.slice(0, at) : whole.text,
      )
      expect(cut.reason).toBe(cut.text === whole.text ? "length" : "stop")
    }
  })
})
