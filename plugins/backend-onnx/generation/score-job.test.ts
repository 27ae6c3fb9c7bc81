import { expect, test } from "vitest"
import type { DecoderSession, ForwardPass } from "../sessions/decoder.ts"
import { CachedDecoder } from "./cached-decoder.ts"
import type { DecoderEvent } from "./decoder-jobs.ts"
import type { Model } from "./model.ts"
import { PrefixCache } from "./prefix-cache.ts"
import { ScoreJob } from "./score-job.ts"

const vocabulary = 8
const round = (value: number): number => Math.fround(value % 1)

/**
 * A session whose keys and values depend on all tokens before, and, unless it is invariant, on the
 * chunk in which they are computed, as on CPUs that add up rows in another order in other company.
 */
const sessionThatRounds = (isInvariant: boolean) => {
  let tokens = 0
  const forward = async (pass: ForwardPass) => {
    const { ids, count, pastLens, past, logitsAt } = pass
    tokens += count
    const fresh = new Float32Array(2 * count)
    let sum = 0
    for (let at = 0; at < pastLens[0]!; at++) sum = round(sum * 3 + past[0]![at]!)
    for (let at = 0; at < count; at++) {
      const value = round(ids[at]! / 7 + sum / 3 + (isInvariant ? 0 : count / 1_000))
      fresh[at] = value
      sum = round(sum * 3 + value)
    }
    const logits = new Float32Array(logitsAt.length * vocabulary)
    if (logitsAt.length) logits.set([sum, 1 - sum])
    return { logits, fresh }
  }
  const decoder: DecoderSession = {
    isInvariant,
    shape: { layers: 1, kvHeads: 1, headSize: 1, vocabulary, contextTokens: 10_000 },
    forward,
    close: async () => {},
  }
  return { session: new CachedDecoder(decoder), computed: () => tokens }
}

const open = (isInvariant: boolean, prefixCacheBytes = 1e6) => {
  const { session, computed } = sessionThatRounds(isInvariant)
  const prefixes = new PrefixCache(prefixCacheBytes, 8)
  const model = { session, prefixes } as unknown as Model
  const score = async (prompts: readonly Int32Array[], owner = "a") => {
    const before = computed()
    const scores: number[] = []
    const emit = (event: DecoderEvent) => {
      if (event.type === "score") scores[event.index] = event.score
    }
    const request = { kind: "score", owner, prompts, yesTokens: [0], noTokens: [1] } as const
    const job = new ScoreJob(model, request, emit)
    while (!(await job.prefill())) {
      // the next chunk
    }
    return { scores, tokens: computed() - before }
  }
  return { score, prefixes }
}

/** A prefix of 150 tokens, then those of a document. */
const prompt = (document: number, length: number): Int32Array =>
  Int32Array.from({ length: 150 + length }, (_, i) => (i < 150 ? i % 5 : (i * document) % 7))
const prompts = [prompt(3, 20), prompt(4, 90), prompt(5, 1), prompt(3, 20)]

test.each([true, false])(
  "has the same bits in any company (invariant: %s)",
  async (isInvariant) => {
    const together = (await open(isInvariant).score(prompts)).scores
    expect(new Set(together).size).toBe(3)
    const { score } = open(isInvariant)
    for (const [i, one] of prompts.entries()) {
      expect((await open(isInvariant).score([one])).scores).toEqual([together[i]])
      expect((await score([one])).scores).toEqual([together[i]])
    }
    const turned = [...prompts].reverse()
    expect((await score(turned)).scores.reverse()).toEqual(together)
    expect((await open(isInvariant, 0).score(prompts)).scores).toEqual(together)
  },
)

test("computes what prompts share once, and takes it from the prefix cache next time", async () => {
  const { score, prefixes } = open(true)
  const first = 150 + 20 + 90 + 1 + 20
  expect((await score(prompts)).tokens).toBe(first)
  expect((await score(prompts)).tokens).toBe(first - 150)
  expect(prefixes.stats().prefixCacheHits).toBeGreaterThanOrEqual(7 * 150)
  // of another account nothing is known
  expect((await score(prompts, "b")).tokens).toBe(first)
  // whole chunks only, where chunks matter
  const { score: rounding } = open(false)
  expect((await rounding(prompts)).tokens).toBe(170 + (240 - 128) + (151 - 128) + (170 - 128))
  expect((await rounding(prompts)).tokens).toBe(4 * 22 + 20 + 90 + 1 + 20)
  // nor does it need a prefix cache for prompts of one request
  expect((await open(true, 0).score(prompts)).tokens).toBe(first)
})
