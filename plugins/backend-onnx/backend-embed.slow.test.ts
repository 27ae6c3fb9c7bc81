import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { EmbedRequest, LoadedModel } from "../../core/ports/model.ts"
import { stackedRotations } from "./encoding/stacked-rotations.ts"
import { bertReference } from "./testing/bert-reference.ts"
import { collect, context, failureOf, openBackend } from "./testing/open-backend.ts"
import { tinyBertShape, tinyBertVocabulary, writeTinyBert } from "./testing/tiny-bert.ts"

const fixture = openBackend()
const { width } = tinyBertShape
let model: LoadedModel<"embed">

beforeAll(async () => {
  model = await fixture.open("embed", writeTinyBert(join(fixture.dataDir, "tiny")))
})
afterAll(() => fixture.close())

const request = (texts: readonly string[], more: Partial<EmbedRequest> = {}): EmbedRequest => ({
  items: texts.map((text) => ({ type: "text", text })),
  truncate: "END",
  ...more,
})

const embed = async (
  texts: readonly string[],
  more: Partial<EmbedRequest> = {},
  { metered = context(), of = model } = {},
) => {
  const plan = await Effect.runPromise(of.task.plan(request(texts, more), metered))
  const events = [...(await collect(plan))].sort((a, b) => a.index - b.index)
  return {
    plan,
    events,
    vectors: events.map((event) => event.vector),
    usage: metered.usage.at(-1)!,
  }
}
const gap = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Math.max(...Array.from(a, (value, i) => Math.abs(value - b[i]!)))

const map = stackedRotations(width, 2048)
const idsIn = (letters: string) => [...letters].map((letter) => tinyBertVocabulary.indexOf(letter))
/** The embedding of tokens by an independent implementation. */
const ofTokens = (ids: readonly number[]): readonly number[] => {
  const vector = bertReference([2, ...ids, 3])
  return Array.from({ length: 2048 }, (_, row) =>
    vector.reduce((sum, value, i) => sum + value * map[row * width + i]!, 0),
  )
}
const wanted = (letters: string) => ofTokens(idsIn(letters))
const spaced = (letters: string) => [...letters].join(" ")

test("says what it is", () => {
  expect(model).toMatchObject({
    contextTokens: 1_000_000,
    modalities: ["text"],
    servedBy: "onnx cpu",
  })
  expect(model.embeddingSpace).toMatch(/^tiny-bert-[0-9a-f]{12}-2048r1$/)
})

test("vectors are those of an independent implementation, in the space, in a batch of any lengths", async () => {
  const words = ["a", "bcd", "thequickbrown", "xyzzy", "qq", "jumpsover"]
  const { vectors, usage, plan } = await embed(words.map(spaced))
  for (const [i, word] of words.entries()) {
    expect(gap(vectors[i]!, wanted(word))).toBeLessThan(1e-5)
    expect(Math.hypot(...vectors[i]!)).toBeCloseTo(1, 5)
  }
  expect(usage.inputTokens).toBe(words.join("").length + 2 * words.length)
  expect(plan.bound).toEqual(usage)
})

test("tokens give the vector of their text, with special tokens or without, behind an instruction too", async () => {
  const ids = [..."bcd"].map((letter) => tinyBertVocabulary.indexOf(letter))
  const framed = [2, ...ids, 3]
  const items = [ids, framed].map((all) => ({ type: "tokens", ids: Int32Array.from(all) }) as const)
  const { vectors, usage } = await embed([], { items })
  for (const vector of vectors) expect(gap(vector, wanted("bcd"))).toBeLessThan(1e-5)
  expect(usage.inputTokens).toBe(10)
  const instructed = { instruction: "query" }
  const [fromTokens] = (await embed([], { items, ...instructed })).vectors
  const [fromText] = (await embed([spaced("bcd")], instructed)).vectors
  expect(gap(fromTokens!, fromText!)).toBeLessThan(1e-6)
})

test("int8 stays close", async () => {
  const exact = (await embed([spaced("thequick")])).vectors[0]!
  const coarse = await fixture.open("embed", join(fixture.dataDir, "tiny"), {
    options: { precision: "int8", space: "mine" },
  })
  const plan = await Effect.runPromise(coarse.task.plan(request([spaced("thequick")]), context()))
  const [event] = await collect(plan)
  expect(exact.reduce((sum, value, i) => sum + value * event!.vector[i]!, 0)).toBeGreaterThan(0.995)
  expect(coarse.embeddingSpace).toMatch(/^mine-/)
})

const alphabet = "abcdefghijklmnopqrstuvwxyz"
const instruction = [tinyBertVocabulary.indexOf("query"), tinyBertVocabulary.indexOf(":")]

/** The mean of vectors by weight, of norm 1. */
const meanOf = (...parts: readonly (readonly [number, readonly number[]])[]) => {
  const sums = Array.from({ length: 2048 }, (_, i) =>
    parts.reduce((sum, [weight, vector]) => sum + weight * vector[i]!, 0),
  )
  return sums.map((value) => value / Math.hypot(...sums))
}

describe("a text over the model's window", () => {
  test("is the mean of windows, each weighed by what it has more, and its tokens count once", async () => {
    const { events, usage, plan } = await embed([spaced(alphabet), "a b"])
    expect(events.map(({ index, truncated }) => [index, truncated])).toEqual([
      [0, false],
      [1, false],
    ])
    const mean = meanOf([18, wanted(alphabet.slice(0, 18))], [8, wanted(alphabet.slice(16))])
    expect(gap(events[0]!.vector, mean)).toBeLessThan(1e-5)
    expect(gap(events[1]!.vector, wanted("ab"))).toBeLessThan(1e-5)
    expect(usage.inputTokens).toBe(28 + 4)
    expect(plan.bound).toEqual(usage)
  })

  test("fits with NONE, and its last word counts, however long it is", async () => {
    const long = (end: string) => spaced(`${alphabet.repeat(3)}${end}`)
    const { vectors } = await embed([long("a"), long("z")], { truncate: "NONE" })
    expect(gap(vectors[0]!, vectors[1]!)).toBeGreaterThan(1e-4)
    for (const vector of vectors) expect(Math.hypot(...vector)).toBeCloseTo(1, 5)
    const ids = Int32Array.from([2, ...idsIn(`${alphabet.repeat(3)}z`), 3])
    const tokens = await embed([], { items: [{ type: "tokens", ids }] })
    expect(gap(tokens.vectors[0]!, vectors[1]!)).toBeLessThan(1e-5)
  })

  test("has its instruction in each window", async () => {
    const { vectors, usage } = await embed([spaced(alphabet)], { instruction: "query :" })
    const [first, second] = [alphabet.slice(0, 16), alphabet.slice(14)].map((part) =>
      ofTokens([...instruction, ...idsIn(part)]),
    )
    expect(gap(vectors[0]!, meanOf([16, first!], [10, second!]))).toBeLessThan(1e-5)
    expect(usage.inputTokens).toBe(30)
  })

  test("begins with its instruction where that takes more than half of the window", async () => {
    const { vectors } = await embed([spaced(alphabet)], { instruction: spaced("qwertyuiop") })
    const all = `qwertyuiop${alphabet}`
    const mean = meanOf(
      [18, wanted(all.slice(0, 18))],
      [16, wanted(all.slice(16, 34))],
      [2, wanted(all.slice(32))],
    )
    expect(gap(vectors[0]!, mean)).toBeLessThan(1e-5)
    const short = await embed(["a b"], { instruction: spaced("qwertyuiop") })
    expect(gap(short.vectors[0]!, wanted("qwertyuiopab"))).toBeLessThan(1e-5)
  })
})

describe("a text over the limit of the entry", () => {
  let limited: LoadedModel<"embed">
  beforeAll(async () => {
    limited = await fixture.open("embed", join(fixture.dataDir, "tiny"), { contextTokens: 22 })
  })

  test("is cut at its end or its start, and says so", async () => {
    const { events, usage } = await embed([spaced(alphabet), "a b"], {}, { of: limited })
    expect(events.map((event) => event.truncated)).toEqual([true, false])
    const kept = meanOf([18, wanted(alphabet.slice(0, 18))], [2, wanted(alphabet.slice(16, 20))])
    expect(gap(events[0]!.vector, kept)).toBeLessThan(1e-5)
    expect(usage.inputTokens).toBe(22 + 4)
    const start = await embed([spaced(alphabet)], { truncate: "START" }, { of: limited })
    const last = meanOf([18, wanted(alphabet.slice(6, 24))], [2, wanted(alphabet.slice(22))])
    expect(gap(start.vectors[0]!, last)).toBeLessThan(1e-5)
  })

  test("fails with NONE, naming the text", async () => {
    const error = await failureOf(
      limited.task.plan(request(["a", spaced(alphabet)], { truncate: "NONE" }), context()),
    )
    expect(error).toMatchObject({ code: "text_too_long", param: "input[1]" })
    expect(error.message).toContain("28 tokens")
  })

  test("never loses its instruction", async () => {
    const more = { instruction: "query :", truncate: "START" } as const
    const { vectors, usage } = await embed([spaced(alphabet)], more, { of: limited })
    const [first, second] = [alphabet.slice(8, 24), alphabet.slice(22)].map((part) =>
      ofTokens([...instruction, ...idsIn(part)]),
    )
    expect(gap(vectors[0]!, meanOf([16, first!], [2, second!]))).toBeLessThan(1e-5)
    expect(usage.inputTokens).toBe(22)
    const error = await failureOf(
      limited.task.plan(request(["a"], { instruction: spaced(alphabet) }), context()),
    )
    expect(error).toMatchObject({ code: "invalid_request_error", param: "instruction" })
  })
})

test("images are refused by their place", async () => {
  const items = [
    { type: "text", text: "a" } as const,
    { type: "media", mediaType: "image/png", bytes: new Uint8Array() } as const,
  ]
  expect(await failureOf(model.task.plan({ items, truncate: "END" }, context()))).toMatchObject({
    code: "unsupported_parameter",
    param: "input[1]",
  })
})

test("requests that come together share steps, and each gets its own vectors", async () => {
  const words = ["a", "bcd", "dcb", "xyzzy", "qq", "uq", "jumpsover", "a"]
  const answers = await Promise.all(
    words.map((word, i) => embed([spaced(word), spaced("ab".repeat(i))])),
  )
  for (const [i, { vectors, usage, events }] of answers.entries()) {
    expect(events.map(({ index }) => index)).toEqual([0, 1])
    expect(gap(vectors[0]!, wanted(words[i]!))).toBeLessThan(1e-5)
    expect(gap(vectors[1]!, wanted("ab".repeat(i)))).toBeLessThan(1e-5)
    expect(usage.inputTokens).toBe(words[i]!.length + 2 * i + 4)
  }
})

describe("several engines side by side", () => {
  const wide = openBackend({ threads: 3 })
  afterAll(() => wide.close())

  test("answer a request together, and count what each did", async () => {
    const together = await wide.open("embed", join(fixture.dataDir, "tiny"), {
      options: { instances: 3 },
    })
    const words = ["a", "bcd", "thequickbrown", "xyzzy", "qq"]
    const metered = context()
    const plan = await Effect.runPromise(together.task.plan(request(words.map(spaced)), metered))
    const events = [...(await collect(plan))].sort((a, b) => a.index - b.index)
    for (const [i, { index, vector }] of events.entries()) {
      expect(index).toBe(i)
      expect(gap(vector, wanted(words[i]!))).toBeLessThan(1e-5)
    }
    expect(metered.usage.at(-1)).toEqual(plan.bound)
  })
})

describe("a model that can't be opened", () => {
  test.each<readonly [string, Record<string, object>, RegExp]>([
    [
      "another architecture",
      { "config.json": { model_type: "t5" } },
      /config.json: 'model_type' is 't5'/,
    ],
    [
      "other pooling",
      { "1_Pooling/config.json": { pooling_mode_median_tokens: true } },
      /1_Pooling.config.json: it pools by .median./,
    ],
    [
      "another part",
      { "modules.json": [{ type: "sentence_transformers.models.WordWeights" }] },
      /modules.json: its part/,
    ],
    [
      "a broken tokenizer",
      { "tokenizer.json": { version: "1.0" } },
      /tokenizer.json: it can't be used/,
    ],
  ])("%s", async (name, files, reason) => {
    const path = writeTinyBert(join(fixture.dataDir, name), files)
    const error = await fixture.failure("embed", path)
    expect(error).toMatchObject({ code: "backend_error", message: expect.stringMatching(reason) })
  })

  test("without weights, or with broken ones", async () => {
    const path = writeTinyBert(join(fixture.dataDir, "weightless"))
    writeFileSync(join(path, "model.safetensors"), "nonsense of a file")
    expect((await fixture.failure("embed", path)).message).toMatch(
      /model.safetensors: this is not a safetensors file/,
    )
    rmSync(join(path, "model.safetensors"))
    expect((await fixture.failure("embed", path)).message).toMatch(
      /it has neither model.safetensors nor/,
    )
  })
})
