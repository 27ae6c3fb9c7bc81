import { hash } from "node:crypto"
import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type {
  EmbedEvent,
  EmbedItem,
  EmbedRequest,
  LoadedModel,
  ModelContext,
} from "../../core/ports/model.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { type Usage, usageOf } from "../../core/usage.ts"
import { type FakeModel, fakeEntry } from "./catalogue.ts"
import {
  type FakePace,
  type FakeRun,
  type FakeStep,
  fakeTokens,
  noMedia,
  refused,
  runSteps,
} from "./model-run.ts"

export interface FakeEmbedScript extends FakePace {
  readonly entry?: Partial<ModelEntry>
  /** Length of its vectors; 2048 by default. */
  readonly dimensions?: number
  readonly embeddingSpace?: string
  /** A text with this word has NaN in its vector. */
  readonly brokenWord?: string
}

export interface FakeEmbedModel extends FakeModel<"embed"> {
  readonly runs: readonly FakeRun<EmbedRequest>[]
}

interface Item {
  readonly words: readonly (string | Uint8Array)[]
  readonly tokens: number
  readonly images: number
  readonly truncated: boolean
}

interface Push {
  readonly seed: number
  readonly by: 1 | -1
}

const pushesOf = (word: string | Uint8Array): readonly Push[] => {
  const digest = hash("sha256", word, "buffer")
  return Array.from({ length: 8 }, (_, k) => ({
    seed: digest.readUInt32LE(4 * k),
    by: digest.readUInt8(4 * k) % 2 === 0 ? 1 : -1,
  }))
}

const maxKnown = 10_000
/** A benchmark sends the same words again, and measures no hash. */
const known = new Map<string, readonly Push[]>()

const knownPushesOf = (word: string | Uint8Array): readonly Push[] => {
  if (typeof word !== "string") return pushesOf(word)
  const before = known.get(word)
  if (before) return before
  if (known.size >= maxKnown) known.clear()
  const pushes = pushesOf(word)
  known.set(word, pushes)
  return pushes
}

/**
 * Each word has a direction, seeded by its hash; a text is the normalized sum of its words. So
 * texts that share words are near each other.
 */
const direction = (words: readonly (string | Uint8Array)[], dimensions: number): Float32Array => {
  const vector = new Float32Array(dimensions)
  const touched = new Set<number>()
  for (const word of words)
    for (const { seed, by } of knownPushesOf(word)) {
      const at = seed % dimensions
      vector[at]! += by
      touched.add(at)
    }
  let square = 0
  for (const at of touched) square += vector[at]! ** 2
  if (square === 0) vector[0] = 1
  const norm = Math.sqrt(square)
  if (norm > 0) for (const at of touched) vector[at]! /= norm
  return vector
}

const maxVectors = 1_000
const vectors = new Map<string, Float32Array>()

/** The same vector for the same words: where the fake must take no time, it allocates none either. */
const knownDirection = (
  words: readonly (string | Uint8Array)[],
  dimensions: number,
): Float32Array => {
  if (words.some((word) => typeof word !== "string")) return direction(words, dimensions)
  const key = `${dimensions} ${words.join(" ")}`
  const before = vectors.get(key)
  if (before) return before
  if (vectors.size >= maxVectors) vectors.clear()
  const vector = direction(words, dimensions)
  vectors.set(key, vector)
  return vector
}

const cut = (words: readonly string[], room: number, truncate: EmbedRequest["truncate"]) =>
  truncate === "START" ? words.slice(-room) : words.slice(0, room)

const vocabulary = 50_000

/** A token is a word of its own. */
const wordsOf = (part: Exclude<EmbedItem, { readonly type: "media" }>): readonly string[] =>
  part.type === "tokens"
    ? Array.from(part.ids, (id) => `#${id}`)
    : fakeTokens(part.text.toLowerCase()).map((word) => word.trim())

const readItem = (
  entry: ModelEntry,
  request: EmbedRequest,
  part: EmbedItem,
  index: number,
): Effect.Effect<Item, ApiError> => {
  if (part.type === "media")
    return entry.modalities.includes("image")
      ? Effect.succeed({ words: [part.bytes], tokens: 0, images: 1, truncated: false })
      : Effect.fail(noMedia("images"))
  const instruction = fakeTokens(request.instruction ?? "")
  const foreign = part.type === "tokens" ? part.ids.findIndex((id) => id >= vocabulary) : -1
  if (foreign >= 0)
    return Effect.fail(
      apiError("invalid_request_error", `The vocabulary has ${vocabulary} tokens.`, {
        param: `input[${index}][${foreign}]`,
      }),
    )
  const words = wordsOf(part)
  const room = Math.max(1, entry.contextTokens - instruction.length)
  const truncated = words.length > room
  if (truncated && request.truncate === "NONE")
    return Effect.fail(
      apiError(
        "text_too_long",
        `input[${index}] has ${words.length} tokens; the model takes ${room}.`,
        { param: `input[${index}]` },
      ),
    )
  const kept = cut(words, room, request.truncate)
  return Effect.succeed({
    words: [...instruction, ...kept],
    tokens: instruction.length + kept.length,
    images: 0,
    truncated,
  })
}

class EmbedStep implements FakeStep<EmbedEvent> {
  private readonly index: number
  private readonly item: Item
  readonly usage: Usage
  private readonly script: FakeEmbedScript

  constructor(index: number, item: Item, usage: Usage, script: FakeEmbedScript) {
    this.index = index
    this.item = item
    this.usage = usage
    this.script = script
  }

  /** Made when the step runs: a plan is cheap. */
  get events(): readonly EmbedEvent[] {
    const { words, truncated } = this.item
    const { dimensions = 2048, brokenWord, atOnce } = this.script
    const isBroken = brokenWord !== undefined && words.includes(brokenWord)
    const vector = (atOnce && !isBroken ? knownDirection : direction)(words, dimensions)
    if (isBroken) vector[0] = Number.NaN
    return [{ index: this.index, vector, truncated }]
  }
}

const stepsOf = (
  items: readonly Item[],
  script: FakeEmbedScript,
): readonly FakeStep<EmbedEvent>[] => {
  let tokens = 0
  let images = 0
  // from the last to the first: the port promises no order
  return [...items.entries()].reverse().map(([index, item]) => {
    tokens += item.tokens
    images += item.images
    return new EmbedStep(index, item, usageOf({ inputTokens: tokens, images }), script)
  })
}

/**
 * Embeds words by hash: equal inputs have equal vectors, and shared words bring texts together. One
 * step for each item, the last item first.
 */
export const fakeEmbedModel = (script: FakeEmbedScript = {}): FakeEmbedModel => {
  const entry = fakeEntry("embed", script.entry)
  const runs: FakeRun<EmbedRequest>[] = []
  const plan: LoadedModel<"embed">["task"]["plan"] = Effect.fnUntraced(function* (
    request: EmbedRequest,
    context: ModelContext,
  ) {
    yield* refused(script)
    const items = yield* Effect.forEach(request.items, (part, index) =>
      readItem(entry, request, part, index),
    )
    const steps = stepsOf(items, script)
    return {
      bound: steps.at(-1)?.usage ?? usageOf({}),
      run: runSteps(runs, entry.id, script, request, context, steps),
    }
  })
  const embeddingSpace = script.embeddingSpace ?? "fake-words-v1"
  return {
    entry,
    runs,
    loaded: {
      task: { plan },
      contextTokens: entry.contextTokens,
      modalities: entry.modalities,
      capabilities: [],
      adapters: [],
      embeddingSpace,
      servedBy: "fake",
    },
  }
}
