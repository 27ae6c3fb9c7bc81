import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import type { GenerateRequest } from "./decoder-jobs.ts"
import { type Automaton, AutomatonConstraints, matches } from "./testing/automaton.ts"
import type { FakeAnswer } from "./testing/fake-model.ts"
import { letters, openLetters as open } from "./testing/letters-model.ts"

/** No letter is this one, so that everything may be taken back. */
const nothing = "?"
const noDocument = "no valid document was found from here on"

const guarded = (automaton: Automaton, letter = nothing) => ({
  grammar: AutomatonConstraints.grammar(automaton, undefined, letter),
  closeOnLength: false,
})

const path = (from: number, text: string, to: number): Automaton["moves"] => {
  const between = (at: number) => (at === 0 ? from : at === text.length ? to : from * 100 + 50 + at)
  return [...text].map((letter, at) => [between(at), letter, between(at + 1)])
}

const textSent = ({ events }: FakeAnswer): readonly string[] =>
  events.flatMap((event) => (event.type === "token" ? [event.text] : []))

const greedy = {
  temperature: 0,
  topP: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  logitBias: [],
}

/** `a` has no end, `b` has. */
const trap: Automaton = {
  moves: [...path(0, "aaaa", 1), [0, "b", 2], ...path(2, "cc", 3)],
  accepting: [3],
}

describe("a dead end", () => {
  // the model wants nothing but "a"
  const like = { 3: 50 }

  test("is left by the last choice, and only the final tokens are counted", async () => {
    const said = await open({ like }).ask({ grammar: guarded(trap), sampler: greedy })
    expect(said).toMatchObject({ text: "bcc", reason: "stop", end: "done" })
    expect(textSent(said).join("")).toBe("bcc")
    expect(
      said.events.flatMap((event) => (event.type === "token" ? [event.outputTokens] : [])),
    ).toEqual(textSent(said).map((_, at) => at + 1))
  })

  test("fails where there is no other choice, and nothing has gone out", async () => {
    const said = await open({ like }).ask({
      grammar: guarded({ moves: path(0, "aaaa", 1), accepting: [] }),
    })
    expect(said).toMatchObject({ text: "", reason: undefined, end: noDocument, tokens: 0 })
  })

  test("fails where the choice has gone out, and says nothing more", async () => {
    const said = await open({ like }).ask({ grammar: guarded(trap, "a"), sampler: greedy })
    expect(said.end).toBe(noDocument)
    expect(said.reason).toBeUndefined()
    expect("aaaa".startsWith(said.text)).toBe(true)
  })

  test("is not looked for where nothing is guarded", async () => {
    const grammar = { grammar: AutomatonConstraints.grammar(trap), closeOnLength: false }
    expect((await open({ like }).ask({ grammar, sampler: greedy })).end).toBe(
      "the grammar allows no token",
    )
  })

  test("ends the request after a bounded number of tries, however many ways there are", async () => {
    const model = open({ like: { 0: -50, 1: -50 } })
    const endless: Automaton = {
      moves: letters.flatMap((letter) => [
        [0, letter, 0],
        [0, letter, 1],
      ]),
      accepting: [],
    }
    // ">" leads nowhere, all else goes on
    const moves = endless.moves.filter(([, letter, to]) => (letter === ">") === (to === 1))
    const said = await model.ask({ grammar: guarded({ moves, accepting: [] }), maxTokens: 4_000 })
    expect(said.end).toBe(noDocument)
    expect(model.steps()).toBeLessThan(5_000)
  })
})

test("the choice far behind is found, though there are other ways to go on near the end", async () => {
  // after "a", any text of b and c follows and no quote may end it; after "<" one may
  const far: Automaton = {
    moves: [
      [0, '"', 1],
      [1, "a", 2],
      [1, "<", 3],
      [2, "b", 2],
      [2, "c", 4],
      [3, "b", 3],
      [3, '"', 5],
    ],
    accepting: [5],
  }
  for (let seed = 0; seed < 20; seed++) {
    const said = await open({ like: { 3: 9, 4: 3 } }).ask({
      grammar: guarded(far),
      seed,
      maxTokens: 200,
    })
    expect(said).toMatchObject({ end: "done", reason: "stop" })
    expect(said.text).toMatch(/^"<b*"$/)
  }
})

test("after a dead end everything is as if the way had not been taken: text, log-probabilities, penalties", async () => {
  // any ten letters that do not begin with "a"
  const rest: Automaton["moves"] = Array.from({ length: 10 }, (_, at) => at).flatMap((at) =>
    letters
      .filter((letter) => at > 0 || letter !== "a")
      .map((letter) => [at === 0 ? 0 : 20 + at, letter, 21 + at] as const),
  )
  const without = { moves: rest, accepting: [30] }
  const withTrap = { moves: [...rest, ...path(0, "aaaa", 1)], accepting: [30] }
  const wants = new Set<string>()
  for (let more = 2; more < 12; more++)
    for (const speculation of [true, false]) {
      const ask = (automaton: Automaton) =>
        open({ like: { 3: more }, speculation }).ask({
          grammar: guarded(automaton),
          sampler: { ...greedy, frequencyPenalty: 1.5, presencePenalty: 1, repetitionPenalty: 1.2 },
          topLogprobs: 2,
        })
      const [free, trapped] = [await ask(without), await ask(withTrap)]
      expect(trapped).toMatchObject({ text: free.text, tokens: free.tokens, reason: "stop" })
      const detailsOf = ({ events }: FakeAnswer) =>
        events.flatMap((event) => ("details" in event ? (event.details ?? []) : []))
      expect(detailsOf(trapped)).toEqual(detailsOf(free))
      wants.add(free.text)
    }
  expect(wants.size).toBeGreaterThan(3)
})

test("only an answer that was to be closed says whether it is whole", async () => {
  const ends = async (closeOnLength: boolean, maxTokens: number) => {
    const said = await open({ like: { 3: 50 } }).ask({
      grammar: { ...guarded(trap), closeOnLength },
      maxTokens,
    })
    return said.events.flatMap((event) =>
      event.type === "finish" ? [[event.reason, event.isWhole]] : [],
    )[0]
  }
  expect(await ends(true, 400)).toEqual(["stop", true])
  expect(await ends(true, 2)).toEqual(["length", false])
  expect(await ends(false, 2)).toEqual(["length", undefined])
})

const automaton: fc.Arbitrary<Automaton> = fc.integer({ min: 2, max: 7 }).chain((states) => {
  const state = fc.nat(states - 1)
  return fc.record({
    moves: fc.uniqueArray(fc.tuple(state, fc.constantFrom(...letters), state), {
      minLength: 3,
      maxLength: 18,
      selector: ([from, letter]) => `${from}${letter}`,
    }),
    accepting: fc.uniqueArray(state, { minLength: 1, maxLength: 2 }),
  })
})

/** No state comes again, so the ways are few. */
const acyclic = automaton.map(({ moves, accepting }) => ({
  moves: moves.filter(([from, , to]) => from < to),
  accepting,
}))

const hasDocument = ({ moves, accepting }: Automaton): boolean => {
  const reached = new Set([0])
  for (const state of reached) for (const [from, , to] of moves) if (from === state) reached.add(to)
  return accepting.some((state) => reached.has(state))
}

const request = fc.record({
  seed: fc.nat(),
  letter: fc.constantFrom(nothing, nothing, ...letters),
  sampler: fc.record({
    temperature: fc.constantFrom(0, 1),
    topP: fc.constantFrom(1, 0.9),
    frequencyPenalty: fc.constantFrom(0, 1),
    presencePenalty: fc.constant(0),
    logitBias: fc.constant([]),
    repetitionPenalty: fc.constantFrom(1, 1.3),
  }),
  maxTokens: fc.integer({ min: 4, max: 40 }),
  topLogprobs: fc.constantFrom(undefined, 1),
})

const askOf = (
  automaton: Automaton,
  more: typeof request extends fc.Arbitrary<infer T> ? T : never,
) => {
  const { letter, topLogprobs, ...rest } = more
  const ask: Partial<GenerateRequest> = {
    ...rest,
    ...(topLogprobs && { topLogprobs }),
    grammar: guarded(automaton, letter),
  }
  return ask
}

test("whatever the ways: a stop is a document, the same request takes the same ways, alone and among others, and what goes out is never taken back", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(automaton, request), { minLength: 1, maxLength: 5 }),
      async (asks) => {
        const model = open()
        const answers = await Promise.all(asks.map(([of, more]) => model.ask(askOf(of, more))))
        for (const [i, said] of answers.entries()) {
          const [of, more] = asks[i]!
          const { text, reason, tokens, events, end } = said
          if (end === "done") {
            if (reason === "stop") expect(matches(of, text)).toBe(true)
            else expect(tokens).toBe(more.maxTokens)
          } else expect(end).toBe(noDocument)
          expect(tokens).toBeLessThanOrEqual(more.maxTokens)
          expect(
            events.flatMap((event) => (event.type === "token" ? [event.outputTokens] : [])),
          ).toEqual(Array.from({ length: tokens }, (_, at) => at + 1))
          if (more.topLogprobs && end === "done")
            expect(
              events
                .flatMap((event) => ("details" in event ? (event.details ?? []) : []))
                .map(({ bytes }) => Buffer.from(bytes).toString())
                .join(""),
            ).toBe(text)
          const alone = await open({ speculation: i % 2 === 0 }).ask(askOf(of, more))
          expect([alone.text, alone.end, alone.tokens]).toEqual([text, end, tokens])
        }
        expect(model.watched).toMatchObject({ open: 0, misused: 0 })
      },
    ),
    { numRuns: runs(200) },
  )
}, 30_000)

test("among few ways, a document is found wherever there is one", async () => {
  await fc.assert(
    fc.asyncProperty(acyclic, request, async (of, more) => {
      const said = await open().ask(askOf(of, { ...more, letter: nothing, maxTokens: 40 }))
      expect(said.end).toBe(hasDocument(of) ? "done" : noDocument)
      if (said.end === "done") expect(matches(of, said.text)).toBe(true)
    }),
    { numRuns: runs(300) },
  )
}, 30_000)
