import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { AdapterChoice, DecoderSession } from "../sessions/decoder.ts"
import { emptyStore, type KvBank } from "../sessions/kv-bank.ts"

const folder = join(import.meta.dirname, "..", "fixtures")

/** The tiny checkpoints of chat models, one or more of each family. */
export const checkpoints = [
  "llama",
  "llama3-sharded",
  "mistral",
  "qwen2",
  "qwen3",
  "gemma3",
  "smollm3",
  "phi3",
  "phi4-mini",
  "qwen3-moe",
]

/** Folder of a tiny checkpoint with the outputs of another implementation, see fixtures/make-fixtures.py. */
export const fixtureFolder = (name: string): string => join(folder, name)

/** Folder of a tiny encoder with the outputs of other implementations, see fixtures/make-encoders.py. */
export const encoderFolder = (name: string): string => join(folder, "encoders", name)

export interface Expected {
  readonly text: string
  /** Tokens whose logits are known. */
  readonly ids: readonly number[]
  readonly textIds: readonly number[]
  readonly chat: readonly { readonly role: string; readonly content: string }[]
  readonly chatIds: readonly number[]
  /** A chat with tools, calls and results, where the family's template knows them. */
  readonly toolChatIds?: readonly number[]
  /** The likeliest tokens after the chat. */
  readonly greedy: readonly number[]
  readonly variants: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export const expectedOf = (name: string): Expected =>
  JSON.parse(readFileSync(join(folder, name, "expected.json"), "utf8")) as Expected

/** Folder of a tiny vision tower, see fixtures/make-towers.py. */
export const towerFolder = (name: string): string => join(folder, "towers", name)

/** Texts of a text tower, their tokens, and their vectors by another implementation. */
export const expectedTexts = (name: string) => {
  const { texts } = JSON.parse(readFileSync(join(towerFolder(name), "expected.json"), "utf8")) as {
    readonly texts: readonly {
      readonly text: string
      readonly ids: readonly number[]
      readonly vector: readonly number[]
    }[]
  }
  return texts
}

/** What a model's image processor makes of drawn pictures; `vector`: what the model makes of that. */
export const processedBy = (name: string) => {
  const { processed } = JSON.parse(
    readFileSync(join(towerFolder(name), "expected.json"), "utf8"),
  ) as {
    readonly processed: readonly {
      readonly width: number
      readonly height: number
      readonly size?: readonly [width: number, height: number]
      readonly pixels: string
      readonly vector?: readonly number[]
    }[]
  }
  return processed
}

/** Pictures as bytes of red, green and blue, and their vectors by another implementation. */
export const expectedTower = (
  name: string,
): {
  readonly pixels: readonly Buffer[]
  readonly vectors: readonly (readonly number[])[]
} => {
  const { pixels, vectors } = JSON.parse(
    readFileSync(join(towerFolder(name), "expected.json"), "utf8"),
  ) as { readonly pixels: readonly string[]; readonly vectors: readonly (readonly number[])[] }
  return { pixels: pixels.map((picture) => Buffer.from(picture, "base64")), vectors }
}

/** Logits after each of the tokens. */
export const expectedLogits = (name: string, variant?: string): readonly Float32Array[] => {
  const { ids } = expectedOf(name)
  const bytes = readFileSync(join(folder, name, variant ? `logits.${variant}.f32` : "logits.f32"))
  const all = new Float32Array(Uint8Array.from(bytes).buffer)
  const size = all.length / ids.length
  return ids.map((_, i) => all.subarray(i * size, (i + 1) * size))
}

/**
 * A key-value cache for `rows` sequences that may get `reach` tokens, and a function that fills it.
 */
export const walkerOf = (
  session: DecoderSession,
  rows: number,
  capacity: number,
  {
    adapters,
    reach = 0,
  }: { readonly adapters?: readonly (AdapterChoice | undefined)[]; readonly reach?: number } = {},
) => {
  const { longAfter = Number.POSITIVE_INFINITY } = session.shape
  const store = emptyStore(session, capacity).another(rows, capacity) as KvBank
  // values beyond a row's past must not matter: 1e30 as a float, the largest half
  for (const array of store.arrays) array.fill(array instanceof Float32Array ? 1e30 : 0x7bff)
  const pastLens = new Array<number>(rows).fill(0)
  /** Runs the same number of tokens in every row. Returns the logits after each of them, row by row. Rows that are not kept forget them. */
  const step = async (
    tokens: readonly (readonly number[])[],
    keeps: readonly boolean[] = tokens.map(() => true),
  ): Promise<readonly Float32Array[]> => {
    const count = tokens[0]!.length
    const ids = tokens.flat()
    const { logits, fresh } = await session.forward({
      rows,
      count,
      ids,
      pastLens,
      long: tokens.map(() => reach > longAfter),
      ...store.rowsFrom(0, rows),
      capacity,
      logitsAt: ids.map((_, i) => i),
      ...(adapters && { adapters }),
    })
    for (const [row, kept] of keeps.entries()) {
      if (!kept) continue
      store.write(row, pastLens[row]!, fresh, { rows, index: row, count, keep: count })
      pastLens[row]! += count
    }
    const size = session.shape.vocabulary
    return ids.map((_, i) => logits.slice(i * size, (i + 1) * size))
  }
  return { step, pastLens }
}

/** Returns the logits after each token of one sequence, computed in chunks of these sizes. */
export const logitsIn = async (
  session: DecoderSession,
  ids: readonly number[],
  sizes: readonly number[],
  adapter?: AdapterChoice,
): Promise<readonly Float32Array[]> => {
  const { step } = walkerOf(session, 1, 64, {
    adapters: [adapter],
    reach: ids.length,
  })
  const out: Float32Array[] = []
  for (const size of sizes) out.push(...(await step([ids.slice(out.length, out.length + size)])))
  return out
}

export const largestGap = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Array.from(a).reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0)

/** The largest difference, relative to the spread of the expected values. */
export const relativeError = (
  found: readonly Float32Array[],
  wanted: readonly Float32Array[],
): number => {
  let [error, power] = [0, 0]
  for (const [i, row] of wanted.entries())
    for (const [j, value] of row.entries()) {
      error += (found[i]![j]! - value) ** 2
      power += value ** 2
    }
  return Math.sqrt(error / power)
}
