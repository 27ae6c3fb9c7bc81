import { expect, test } from "vitest"
import { AutomatonConstraints } from "./testing/automaton.ts"
import { openFakeModel } from "./testing/fake-model.ts"

/** A model of two tokens. */
const openTwoTokens = (logits: Parameters<typeof openFakeModel>[0]["logits"]) => {
  const tokens = ["a", "b"]
  return openFakeModel({
    tokens,
    endTokens: [],
    constraints: new AutomatonConstraints(tokens, new Set()),
    speculation: false,
    logits,
  })
}

test("a sequence that is cancelled while another group is computed is left out", async () => {
  const long = 6_000
  let isLongDecoded = false
  let isCancelled = false
  const late: number[] = []
  const model = openTwoTokens((_token, at) => {
    if (at >= long) {
      if (isCancelled) late.push(at)
      isLongDecoded = true
    } else if (isLongDecoded && !isCancelled) {
      isCancelled = true
      model.cancel(1)
    }
    return [0, 1]
  })
  const short = model.ask({ promptIds: Int32Array.of(0, 1, 0), maxTokens: 300 })
  void model.ask({ promptIds: new Int32Array(long), maxTokens: 300 })
  expect(await short).toMatchObject({ end: "done", tokens: 300 })
  expect(isCancelled).toBe(true)
  expect(late).toEqual([])
})

test("a sequence that is cancelled during a step that fails is not tried alone", async () => {
  let isCancelled = false
  const after: number[] = []
  const model = openTwoTokens((_token, at) => {
    if (isCancelled) after.push(at)
    // both are decoded: the other one is 37 tokens longer
    else if (at === 20) {
      isCancelled = true
      model.cancel(1)
      throw new Error("lost")
    }
    return [0, 1]
  })
  const short = model.ask({ promptIds: Int32Array.of(0, 1, 0), maxTokens: 40 })
  void model.ask({ promptIds: new Int32Array(40), maxTokens: 40 })
  expect(await short).toMatchObject({ end: "done", tokens: 40 })
  expect(after.slice(0, 3)).toEqual([20, 21, 22])
})

test.each([
  { breakpoints: [], isKept: [false, false, true, true] },
  { breakpoints: [20], isKept: [true, true, true, true] },
])(
  "a prompt with breakpoints at $breakpoints is kept before or after the step that reads it",
  async ({ breakpoints, isKept }) => {
    const found: boolean[] = []
    const model = openTwoTokens(() => [0, 1])
    await model.ask(
      { promptIds: new Int32Array(40), cacheBreakpoints: breakpoints, maxTokens: 4 },
      undefined,
      ({ type }) => {
        if (type === "token") found.push(model.prefixBytes() > 0)
      },
    )
    expect(found).toEqual(isKept)
  },
)
