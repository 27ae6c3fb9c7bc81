import { expect, test } from "vitest"
import type { DecoderSession, ForwardPass } from "../sessions/decoder.ts"
import { TextToTokenEncoder } from "../tokenizer/text-to-token-encoder.ts"
import { Scheduler } from "../worker/scheduler.ts"
import { CachedDecoder } from "./cached-decoder.ts"
import type { DecoderEvent, GenerateRequest } from "./decoder-jobs.ts"
import { type DecoderJob, DecoderRunner } from "./decoder-runner.ts"
import { GenerateJob } from "./generate-job.ts"
import { PrefixCache } from "./prefix-cache.ts"

const vocabulary = 64
const [notNumbers, brokenKeys, thrower] = [40, 50, 60]

/** A fake model that counts upwards and fails in a different way on three tokens. */
const counting = () => {
  const passes: ForwardPass[] = []
  const session: DecoderSession = {
    isInvariant: true,
    shape: { layers: 1, kvHeads: 1, headSize: 1, vocabulary, contextTokens: 1_000 },
    forward: async (pass) => {
      passes.push(pass)
      const ids = Array.from(pass.ids)
      if (ids.includes(thrower)) throw new Error("out of memory")
      const seesBroken = pass.past.some((array) => array.some((value) => !Number.isFinite(value)))
      const logits = new Float32Array(pass.logitsAt.length * vocabulary)
      for (const [row, at] of pass.logitsAt.entries()) {
        logits[row * vocabulary + ((ids[at]! + 1) % vocabulary)] = 5
        if (ids[at] === notNumbers || seesBroken)
          logits.fill(Number.NaN, row * vocabulary, (row + 1) * vocabulary)
      }
      const fresh = Float32Array.from({ length: 2 * ids.length }, (_, i) =>
        ids[i % ids.length] === brokenKeys ? Number.NaN : 1,
      )
      return { logits, fresh }
    },
    close: async () => {},
  }
  return { session, passes }
}

const open = () => {
  const { session: decoder, passes } = counting()
  const session = new CachedDecoder(decoder)
  const prefixes = new PrefixCache(1e6, 8)
  const bytesOf = (token: number) => Buffer.from(`${token} `)
  const constraints = {
    open: () => {
      throw new Error("no grammars here")
    },
  }
  const model = {
    session,
    prefixes,
    endTokens: new Set<number>(),
    startsWithSpace: false,
    bytesOf,
    vocabulary,
    constraints,
    textEncoder: new TextToTokenEncoder(vocabulary, bytesOf),
  }
  const ends = new Map<number, string>()
  const texts = new Map<number, string>()
  const scheduler = new Scheduler<DecoderJob>(
    new DecoderRunner(session),
    { slots: 8, capacity: Number.POSITIVE_INFINITY, nowMs: () => 0 },
    {
      done: (id) => ends.set(id, "done"),
      busy: (id) => ends.set(id, "busy"),
      failed: (id, cause) => ends.set(id, (cause as Error).message),
    },
  )
  const submit = (
    id: number,
    promptIds: readonly number[],
    more: Partial<GenerateRequest> = {},
  ) => {
    const sampler = {
      temperature: 0,
      topP: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
      logitBias: [],
    }
    const request: GenerateRequest = {
      kind: "generate",
      owner: "a",
      promptIds: Int32Array.from(promptIds),
      cacheBreakpoints: [],
      maxTokens: 8,
      sampler,
      seed: 1,
      stop: [],
      ...more,
    }
    const emit = (event: DecoderEvent) => {
      if (event.type === "token" || event.type === "finish")
        texts.set(id, (texts.get(id) ?? "") + event.text)
    }
    scheduler.submit({
      id,
      account: "a",
      priority: "realtime",
      waitMs: 0,
      size: 1,
      start: () => new GenerateJob(model, request, emit),
    })
  }
  const settled = async () => {
    for (let i = 0; i < 120; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  return { submit, ends, texts, settled, scheduler, passes, prefixes }
}

test.each([
  ["logits that are not numbers", notNumbers, /logits are not numbers/],
  ["keys that are not numbers", brokenKeys, /keys or values are not finite/],
  ["a step that throws", thrower, /out of memory/],
])(
  "%s fail their own request, in the middle of a batch, and leave no trace",
  async (_, token, reason) => {
    const { submit, ends, texts, settled } = open()
    submit(1, [1, 2, 3])
    submit(2, [token - 3, token - 2])
    submit(3, [20, 21])
    submit(4, [5])
    await settled()
    expect(ends.get(2)).toMatch(reason)
    expect([1, 3, 4].map((id) => ends.get(id))).toEqual(["done", "done", "done"])
    expect([texts.get(1), texts.get(3), texts.get(4)]).toEqual([
      "4 5 6 7 8 9 10 11 ",
      "22 23 24 25 26 27 28 29 ",
      "6 7 8 9 10 11 12 13 ",
    ])
    submit(5, [1, 2, 3])
    await settled()
    expect([ends.get(5), texts.get(5)]).toEqual(["done", "4 5 6 7 8 9 10 11 "])
  },
)

test("a poisoned prompt fails alone, and its beginning is not kept", async () => {
  const { submit, ends, settled } = open()
  submit(1, [...Array.from({ length: 40 }, () => brokenKeys), 1])
  submit(2, [1, 2, 3])
  await settled()
  expect(ends.get(1)).toMatch(/not finite/)
  expect(ends.get(2)).toBe("done")
})

test("nothing is kept of a prompt whose later chunk is poisoned: its row was emptied", async () => {
  const { submit, ends, settled, prefixes } = open()
  submit(1, [...Array.from({ length: 300 }, (_, i) => i % 30), brokenKeys, 1])
  await settled()
  expect(ends.get(1)).toMatch(/not finite/)
  expect(prefixes.bytes).toBe(0)
})

test("a lone writer guesses: fewer passes, and the text that the model would have written", async () => {
  const prompt = [...Array.from({ length: 31 }, (_, i) => i), 5, 6, 7]
  const sampler = {
    temperature: 0.01,
    topP: 1,
    frequencyPenalty: 0,
    presencePenalty: 0,
    logitBias: [],
  }
  const whole = open()
  whole.submit(1, prompt, { maxTokens: 20, sampler })
  await whole.settled()
  expect(whole.texts.get(1)).toBe(Array.from({ length: 20 }, (_, i) => `${8 + i} `).join(""))
  expect(whole.passes.length).toBeLessThan(8)
  const cut = open()
  cut.submit(1, prompt, { maxTokens: 20, sampler, stop: ["12 "] })
  await cut.settled()
  expect([cut.texts.get(1), cut.ends.get(1)]).toEqual(["8 9 10 11 ", "done"])
  const wrong = open()
  wrong.submit(1, [5, 6, 7, 30, 31, 5, 6, 7], { maxTokens: 3, sampler })
  await wrong.settled()
  expect(wrong.texts.get(1)).toBe("8 9 10 ")
  const greedy = open()
  greedy.submit(1, prompt, { maxTokens: 20 })
  await greedy.settled()
  expect(greedy.texts.get(1)).toBe(whole.texts.get(1))
  expect(greedy.passes.length).toBeLessThan(8)
})

test("writers of one bank are one step; a lone one may be several tokens", async () => {
  const { submit, settled, passes } = open()
  submit(1, [1, 2, 3], { maxTokens: 20 })
  submit(2, [4, 5, 6], { maxTokens: 20 })
  await settled()
  expect(Math.max(...passes.map((pass) => pass.rows))).toBe(2)
  expect(passes.filter((pass) => pass.rows === 2).length).toBeGreaterThan(15)
})

test("stopping in the middle of a batch ends it", async () => {
  const { submit, scheduler, passes } = open()
  for (let id = 1; id <= 4; id++) submit(id, [id, id + 1], { maxTokens: 500 })
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
  await scheduler.stop()
  const before = passes.length
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
  expect(passes.length).toBe(before)
})
