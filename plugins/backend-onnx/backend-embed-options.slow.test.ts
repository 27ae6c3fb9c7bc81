import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, expect, test } from "vitest"
import type { LoadedModel } from "../../core/ports/model.ts"
import { encoderFolder } from "./testing/fixtures.ts"
import { collect, context, openBackend } from "./testing/open-backend.ts"
import { writeTinyBert } from "./testing/tiny-bert.ts"

const fixture = openBackend()
afterAll(() => fixture.close())

const vectorOf = async (model: LoadedModel<"embed">, text: string, instruction?: string) => {
  const plan = await Effect.runPromise(
    model.task.plan(
      {
        items: [{ type: "text", text }],
        truncate: "END",
        ...(instruction !== undefined && { instruction }),
      },
      context(),
    ),
  )
  return (await collect(plan))[0]!.vector
}
const gap = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Math.max(...Array.from(a, (value, i) => Math.abs(value - b[i]!)))

test("a model's default prompt comes before texts without an instruction, and others by name", async () => {
  const files = {
    "config_sentence_transformers.json": {
      prompts: { search: "query: ", keep: "a: " },
      default_prompt_name: "search",
    },
  }
  const prompted = await fixture.open(
    "embed",
    writeTinyBert(join(fixture.dataDir, "prompted"), files),
  )
  const plain = await fixture.open("embed", writeTinyBert(join(fixture.dataDir, "plain")))
  const [byDefault, named] = [
    await vectorOf(plain, "b c d", "query:"),
    await vectorOf(plain, "b c d", "a:"),
  ]
  expect(gap(await vectorOf(prompted, "b c d"), byDefault)).toBeLessThan(1e-6)
  expect(gap(await vectorOf(prompted, "b c d", "keep"), named)).toBeLessThan(1e-6)
  expect(gap(byDefault, named)).toBeGreaterThan(0.01)
})

test("pooling and trained prefixes make another space, whose id says which map it has", async () => {
  const open = (options: object) =>
    fixture.open("embed", encoderFolder("bert"), { options: { instances: 1, ...options } })
  const [mean, cls, trained] = [
    await open({}),
    await open({ pooling: "cls" }),
    await open({ matryoshka: true }),
  ]
  expect(mean.embeddingSpace).toMatch(/^bert-[0-9a-f]{12}-2048r1$/)
  expect(trained.embeddingSpace).toBe(mean.embeddingSpace!.replace(/r1$/, "m1"))
  expect([mean.embeddingWidth, trained.embeddingWidth]).toEqual([32, 32])
  expect(cls.embeddingSpace).not.toBe(mean.embeddingSpace)
  expect(gap(await vectorOf(mean, "sea"), await vectorOf(cls, "sea"))).toBeGreaterThan(0.01)
})

test("a classifier of pairs is refused: it has no vectors", async () => {
  const path = encoderFolder("bert-classifier")
  const error = await fixture.failure("embed", path)
  expect(error.message).toContain("it is a classifier of pairs")
})
