import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, describe, expect, test } from "vitest"
import type { Json } from "../../core/json.ts"
import type { EmbedRequest, LoadedModel } from "../../core/ports/model.ts"
import { encoderFolder } from "./testing/fixtures.ts"
import { collect, context, openBackend } from "./testing/open-backend.ts"
import { cosine, expectedEncoder, unmapped } from "./testing/open-encoder.ts"
import { writeSafetensors } from "./testing/safetensors-writer.ts"

const fixture = openBackend()
afterAll(() => fixture.close())

const open = (path: string, options: Json = {}) =>
  fixture.open("embed", path, { options: { instances: 1, ...(options as object) } })

const embed = async (
  model: LoadedModel<"embed">,
  texts: readonly string[],
  more: Partial<EmbedRequest> = {},
) => {
  const metered = context()
  const request: EmbedRequest = {
    items: texts.map((text) => ({ type: "text", text })),
    truncate: "END",
    ...more,
  }
  const plan = await Effect.runPromise(model.task.plan(request, metered))
  const events = [...(await collect(plan))].sort((a, b) => a.index - b.index)
  return { vectors: events.map(({ vector }) => vector), usage: metered.usage.at(-1)! }
}

const nearest = (vector: Float32Array, wanted: readonly number[]) =>
  cosine(unmapped(vector, wanted.length), wanted)

describe.each([
  ["qwen3-embedding", "Find it."],
  ["gemma3-embedding", "search result"],
])("instructions of %s", (name, instruction) => {
  const { texts, prompted } = expectedEncoder(name)
  const words = texts!.map(({ text }) => text)
  const query = prompted!.query!

  test("are before a text as sentence-transformers has them, and only where they are asked for", async () => {
    const model = await open(encoderFolder(name))
    const plain = await embed(model, words)
    const asked = await embed(model, words, { instruction })
    for (const [i, { vector }] of texts!.entries()) {
      expect(nearest(plain.vectors[i]!, vector)).toBeGreaterThan(1 - 1e-6)
      expect(nearest(asked.vectors[i]!, query[i]!.vector)).toBeGreaterThan(1 - 1e-6)
    }
    expect(asked.usage.inputTokens).toBe(query.reduce((sum, { ids }) => sum + ids.length, 0))
  })
})

test("an entry's template comes before the files', whatever the instruction holds", async () => {
  const model = await open(encoderFolder("qwen3-embedding"), {
    instructionTemplate: "Do {instruction} with: ",
  })
  const { vectors } = await embed(model, ["A red apple."], { instruction: "$& {instruction} $1" })
  const whole = await embed(model, ["Do $& {instruction} $1 with: A red apple."])
  expect(cosine(vectors[0]!, whole.vectors[0]!)).toBeGreaterThan(1 - 1e-6)
})

test("an entry's template has a place for the instruction", () => {
  const wrong = (instructionTemplate: string) =>
    fixture.backend.check?.("embed", { instructionTemplate })
  expect(wrong("Query: ")).toMatch(/options.instructionTemplate: must have {instruction} in it/)
  expect(wrong("{instruction}: ")).toBeUndefined()
})

const width = 2_080

/** A tiny encoder whose vectors are longer than those of the space. */
const writeWide = (): ((pooled: readonly number[]) => readonly number[]) => {
  const path = join(fixture.dataDir, "wide")
  cpSync(encoderFolder("modernbert"), path, { recursive: true })
  const modules = JSON.parse(readFileSync(join(path, "modules.json"), "utf8")) as readonly Json[]
  const dense = { type: "sentence_transformers.models.Dense", path: "2_Dense" }
  writeFileSync(join(path, "modules.json"), JSON.stringify([...modules, dense]))
  mkdirSync(join(path, "2_Dense"))
  const values = Float32Array.from({ length: width * 32 }, (_, i) => Math.sin(i * i))
  const config = { in_features: 32, out_features: width, bias: false }
  const activation_function = "torch.nn.modules.linear.Identity"
  writeFileSync(
    join(path, "2_Dense/config.json"),
    JSON.stringify({ ...config, activation_function }),
  )
  writeFileSync(
    join(path, "2_Dense/model.safetensors"),
    writeSafetensors([{ name: "linear.weight", shape: [width, 32], values }]),
  )
  return (pooled) =>
    Array.from({ length: width }, (_, row) =>
      pooled.reduce((sum, value, i) => sum + value * values[row * 32 + i]!, 0),
    )
}

test("of longer vectors than the space's, the prefix is served where it is a vector itself", async () => {
  const longVector = writeWide()
  const path = join(fixture.dataDir, "wide")
  await expect(open(path)).rejects.toThrow(
    /its vectors of 2080 numbers don't fit.*matryoshka: true/s,
  )
  const model = await open(path, { matryoshka: true })
  const [text] = expectedEncoder("modernbert").texts!
  const { vectors } = await embed(model, [text!.text])
  expect(cosine(vectors[0]!, longVector(text!.vector).slice(0, 2048))).toBeGreaterThan(1 - 1e-6)
  const described = await Effect.runPromise(
    fixture.backend.describe!({
      id: "m",
      task: "embed",
      path,
      options: { matryoshka: true },
      contextTokens: 10,
    }),
  )
  expect(described).toMatchObject({ contextTokens: 10 })
})
