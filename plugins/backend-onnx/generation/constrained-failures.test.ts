import { describe, expect, test } from "vitest"
import { type Automaton, AutomatonConstraints } from "./testing/automaton.ts"
import {
  abas,
  anything,
  endOfText,
  endOfTurn,
  endTokens,
  openLetters as open,
  abasRule as rule,
} from "./testing/letters-model.ts"

describe("a grammar that is lost", () => {
  test("fails its own request, in the middle of a batch; the others go on", async () => {
    const model = open()
    const lost = { grammar: AutomatonConstraints.grammar(anything, 3), closeOnLength: false }
    const [failed, other, plain] = await Promise.all([
      model.ask({
        grammar: lost,
        sampler: {
          temperature: 1,
          topP: 1,
          frequencyPenalty: 0,
          presencePenalty: 0,
          logitBias: endTokens.map((id) => [id, -100]),
        },
      }),
      model.ask({ grammar: { ...rule, closeOnLength: true } }),
      model.ask({}),
    ])
    expect([failed.end, other.end, plain.end]).toEqual(["lost", "done", "done"])
    expect(model.watched.open).toBe(0)
  })

  test("from the beginning on, or where it can't be read, never starts", async () => {
    const model = open()
    expect(
      (
        await model.ask({
          grammar: { grammar: AutomatonConstraints.grammar(anything, 0), closeOnLength: true },
        })
      ).end,
    ).toBe("lost")
    expect(
      (
        await model.ask({
          grammar: { grammar: { kind: "schema", schema: {} }, closeOnLength: true },
        })
      ).end,
    ).toMatch(/JSON/)
    expect(
      (await model.ask({ grammar: { ...rule, after: "the model has no such letters" } })).end,
    ).toMatch(/no tokens for the text/)
    expect(model.watched.open).toBe(0)
  })

  test("is let go when its request is cancelled or the engine stops, at any moment", async () => {
    const model = open({ like: { [endOfTurn]: -50, [endOfText]: -50 } })
    const free = { grammar: AutomatonConstraints.grammar(anything), closeOnLength: true }
    for (let events = 1; events < 12; events++)
      await model.ask({ grammar: free, maxTokens: 500 }, events)
    expect(model.watched).toMatchObject({ open: 0, opened: 11 })
    const running = Array.from({ length: 4 }, () =>
      model.ask({ grammar: free, maxTokens: 5_000 }, 30),
    )
    await Promise.all(running)
    // during a forward pass
    let steps = 0
    const cut = open({
      like: { [endOfTurn]: -50, [endOfText]: -50 },
      onStep: () => steps++ === 7 && cut.cancel(0),
    })
    void cut.ask({ grammar: free, maxTokens: 500 })
    for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect([steps > 7, cut.watched]).toMatchObject([true, { open: 0, opened: 1, misused: 0 }])
    void model.ask({ grammar: free, maxTokens: 5_000 })
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(model.watched.open).toBe(1)
    await model.stop()
    expect(model.watched.open).toBe(0)
  })
})

describe("a grammar that takes its time", () => {
  const noEnd = {
    temperature: 1,
    topP: 1,
    frequencyPenalty: 0,
    presencePenalty: 0,
    logitBias: endTokens.map((id) => [id, -100] as const),
  }
  const long = Int32Array.from({ length: 150 }, () => 3)

  test("is not waited for by others: not when it is compiled, and not in the middle of an answer", async () => {
    let isHeldUp = false
    const model = open({ isReady: () => !isHeldUp })
    for (const after of [0, 5]) {
      isHeldUp = after === 0
      const events: string[] = []
      const constrained = model.ask(
        {
          grammar: { grammar: AutomatonConstraints.grammar(anything), closeOnLength: true },
          sampler: noEnd,
          maxTokens: 60,
        },
        undefined,
        ({ type }) => {
          events.push(type)
          isHeldUp ||= events.length === after
        },
      )
      const others = await Promise.all([
        model.ask({ sampler: noEnd, maxTokens: 20 }),
        model.ask({ sampler: noEnd, promptIds: long, maxTokens: 20 }),
      ])
      expect(others.map((other) => other.tokens)).toEqual([20, 20])
      expect(events.length).toBe(after)
      isHeldUp = false
      expect(await constrained).toMatchObject({ end: "done", tokens: 60 })
    }
  })

  test("writes the same as one that is always ready", async () => {
    let turns = 0
    let isOver = false
    const turning = (async () => {
      for (; !isOver; turns++) await new Promise((resolve) => setImmediate(resolve))
    })()
    const [prompt, late] = [open(), open({ isReady: () => turns % 5 !== 2 })]
    const asks = Array.from({ length: 12 }, (_, seed) => {
      const options = { closeOnLength: seed % 2 === 0, ...(seed % 3 === 0 && { after: ">" }) }
      const grammar = {
        grammar: AutomatonConstraints.grammar(seed % 4 ? abas : anything),
        ...options,
      }
      return {
        grammar,
        seed,
        maxTokens: 12,
        ...(seed % 2 && { topLogprobs: 1 }),
        promptIds: seed % 3 ? long : Int32Array.of(3, 4, 5),
      }
    })
    const said = async (model: typeof late) =>
      (await Promise.all(asks.map((ask) => model.ask(ask)))).map(({ text, reason }) => [
        text,
        reason,
      ])
    expect(await said(late)).toEqual(await said(prompt))
    isOver = true
    await turning
    expect(late.watched.open).toBe(0)
  })
})

test("a guess waits for a late grammar, too", async () => {
  let turns = 0
  let isOver = false
  const turning = (async () => {
    for (; !isOver; turns++) await new Promise((resolve) => setImmediate(resolve))
  })()
  const same: Automaton = {
    moves: [...`${"a".repeat(30)}"`].map((letter, at) => [at, letter, at + 1] as const),
    accepting: [31],
  }
  const model = open({ isReady: () => turns % 3 !== 1 })
  const said = await model.ask({
    promptIds: Int32Array.from({ length: 24 }, () => 3),
    maxTokens: 40,
    grammar: { ...rule, grammar: AutomatonConstraints.grammar(same) },
  })
  expect(said).toMatchObject({ text: `${"a".repeat(30)}"`, reason: "stop" })
  isOver = true
  await turning
})

test("a lone sampled writer guesses under a grammar, too: fewer steps, and what the model would have written", async () => {
  const count: Automaton = {
    moves: [...'abcabcabcabcabcabcabcabc"'].map((letter, at) => [at, letter, at + 1] as const),
    accepting: [25],
  }
  const promptIds = Int32Array.from({ length: 24 }, (_, i) => 3 + (i % 3))
  const ask = {
    promptIds,
    maxTokens: 40,
    grammar: { grammar: AutomatonConstraints.grammar(count), closeOnLength: false },
    sampler: { temperature: 0.01, topP: 1, frequencyPenalty: 0, presencePenalty: 0, logitBias: [] },
  }
  const likes = { like: { 3: 5, 4: 5, 5: 5 }, spread: 0.1 }
  const [guessing, plain] = [
    open({ ...likes, speculation: true }),
    open({ ...likes, speculation: false }),
  ]
  expect(await guessing.ask(ask)).toMatchObject({
    text: 'abcabcabcabcabcabcabcabc"',
    reason: "stop",
  })
  expect((await plain.ask(ask)).text).toBe('abcabcabcabcabcabcabcabc"')
  expect(guessing.steps()).toBeLessThan(plain.steps() / 2)
})
