import { describe, expect, test } from "vitest"
import { kernelsVersion } from "../onnx/kernels.ts"
import { openInProcess } from "./testing/in-process.ts"
import { hasRealModel, realModel } from "./testing/real-model.ts"

describe.skipIf(!hasRealModel)("SmolLM2-135M-Instruct, batched", { timeout: 120_000 }, () => {
  const model = realModel({ prefixCacheBytes: 2 ** 28 })
  const asks = [
    "What is the capital of France?",
    "What is 2 + 2?",
    "Which planet do we live on?",
    `${"The sea was calm that day. ".repeat(40)}What is the capital of Italy?`,
  ]
  const hot = {
    temperature: 0.9,
    topP: 0.95,
    frequencyPenalty: 0.2,
    presencePenalty: 0.1,
    logitBias: [],
  }

  test("ragged requests at once answer sensibly, each its own question", async () => {
    const answers = await Promise.all(
      asks.map(async (text, i) =>
        model.ask({ promptIds: await model.promptOf(text), account: `a${i % 2}`, maxTokens: 12 }),
      ),
    )
    // the first token is a close choice that int8 rounding flips depending on the batch: exact
    // weights say France
    for (const [i, wanted] of [/Paris|France/, /4/, /Earth/, /The sea was calm/].entries())
      expect(answers[i]!.text).toMatch(wanted)
  })

  test("with exact weights, ragged requests at once answer what each answers alone", async () => {
    const exact = await openInProcess({
      ...model.spec,
      precision: "fp32",
      prefixCacheBytes: 0,
    })
    try {
      const prompts = await Promise.all(asks.map(model.promptOf))
      const alone: string[] = []
      for (const promptIds of prompts)
        alone.push((await exact.ask({ promptIds, maxTokens: 12 })).text)
      const together = await Promise.all(
        prompts.map((promptIds, i) =>
          exact.ask({ promptIds, account: `a${i % 2}`, maxTokens: 12 }),
        ),
      )
      expect(together.map(({ text }) => text)).toEqual(alone)
      expect(new Set(alone).size).toBe(4)
    } finally {
      await exact.close()
    }
  })

  test("a seed says the same alone, among others, with a cold and with a warm cache", async () => {
    const promptIds = await model.promptOf(
      `${"Bring three apples and a pear. ".repeat(14)}Tell me a story about it.`,
    )
    const ask = { promptIds, sampler: hot, seed: 5, maxTokens: 24 }
    const cold = await model.ask({ ...ask, account: "cold" })
    const warm = await model.ask({ ...ask, account: "cold" })
    const others = Array.from({ length: 3 }, (_, i) =>
      model.ask({ promptIds, sampler: hot, seed: i, account: "cold", maxTokens: 30 }),
    )
    const among = await model.ask({ ...ask, account: "cold" })
    await Promise.all(others)
    expect([warm.text, among.text]).toEqual([cold.text, cold.text])
  })

  test("a cached prompt is nearly free", async () => {
    const promptIds = (
      await model.tokensOf("Once upon a time there was a small boat on a wide sea. ".repeat(40))
    ).subarray(0, 500)
    const ask = () => model.ask({ promptIds, account: "again", maxTokens: 8 })
    const chunks = async () =>
      (await ask()).events.filter((event) => event.type === "prefilled").length
    // of 128 tokens by native kernels, of 64 without
    const cold = kernelsVersion() === undefined ? 8 : 4
    expect([await chunks(), await chunks()]).toEqual([cold, 1])
  })
})
