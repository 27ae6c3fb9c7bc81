import { join } from "node:path"
import { Effect } from "effect"
import sharp from "sharp"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { EmbedItem, LoadedModel, OpenRequest } from "../../core/ports/model.ts"
import { brokenImages, plainImage, quarters, unusualImages } from "../../testing/images.ts"
import { expectedTexts, expectedTower, towerFolder } from "./testing/fixtures.ts"
import { collect, context, failureOf, openBackend } from "./testing/open-backend.ts"
import { cosine } from "./testing/open-encoder.ts"
import { writeTinyBert } from "./testing/tiny-bert.ts"
import { writeTinyTower } from "./testing/tiny-tower.ts"

const fixture = openBackend()
const [text, tower, narrow] = ["text", "tower", "narrow"].map((name) =>
  join(fixture.dataDir, name),
) as [string, string, string]
const adapters = [{ id: "images", path: tower }]
let model: LoadedModel<"embed">
beforeAll(async () => {
  writeTinyBert(text)
  writeTinyTower(tower)
  writeTinyTower(narrow, 24)
  model = await fixture.open("embed", text, { adapters })
})
afterAll(() => fixture.close())

const image = (bytes: Uint8Array): EmbedItem => ({ type: "media", mediaType: "image/png", bytes })
const said = (text: string): EmbedItem => ({ type: "text", text })
const red = () => plainImage(20, 12, "red").png().toBuffer()
const varied = () => quarters(16, 16).png().toBuffer()

const plan = (items: readonly EmbedItem[], metered = context(), of = model) =>
  of.task.plan({ items, truncate: "END" }, metered)
const embed = async (items: readonly EmbedItem[], of = model) => {
  const metered = context()
  const planned = await Effect.runPromise(plan(items, metered, of))
  const events = [...(await collect(planned))].sort((a, b) => a.index - b.index)
  expect(events.map(({ index }) => index)).toEqual(items.map((_, index) => index))
  return { planned, metered, events, vectors: events.map(({ vector }) => vector) }
}
const describeAt = (path: string, more: Partial<OpenRequest> = {}) =>
  Effect.runPromise(
    fixture.backend.describe!({
      ...{ id: "m", task: "embed", path, options: {}, contextTokens: 99 },
      ...more,
    }),
  )
const gap = (a: Float32Array, b: Float32Array) =>
  Math.max(...a.map((value, i) => Math.abs(value - b[i]!)))

test("a model with a tower says so, and its space names both weights", async () => {
  const alone = await fixture.open("embed", text)
  expect(alone).toMatchObject({ modalities: ["text"], adapters: [] })
  expect(model).toMatchObject({ modalities: ["text", "image"], adapters: ["images"] })
  const [, digest] = /^tiny-bert-([0-9a-f]{12})-2048r1$/.exec(alone.embeddingSpace!)!
  expect(model.embeddingSpace).toMatch(new RegExp(`^tiny-bert-${digest}-[0-9a-f]{12}-2048r1$`))
  expect(await describeAt(text, { adapters })).toMatchObject({ modalities: ["text", "image"] })
  expect(await describeAt(text)).toMatchObject({ modalities: ["text"] })
  const textOnly = { adapters, modalities: ["text"] }
  expect(await describeAt(text, textOnly)).toMatchObject({ modalities: ["text"] })
  // its tower is not opened, nor said to be
  const { modalities, embeddingSpace, adapters: open } = await fixture.open("embed", text, textOnly)
  expect([modalities, embeddingSpace, open]).toEqual([["text"], alone.embeddingSpace, []])
})

test("a model with both towers takes images by itself", async () => {
  const path = towerFolder("clip")
  const both = await fixture.open("embed", path)
  expect(both).toMatchObject({ modalities: ["text", "image"], adapters: [] })
  expect(both.embeddingSpace).toMatch(/^tiny-clip-[0-9a-f]{12}-2048r1$/)
  expect(await describeAt(path)).toEqual({
    contextTokens: 99,
    modalities: ["text", "image"],
    capabilities: [],
  })
})

test.each(["clip", "siglip2"])(
  "texts and images of %s have the cosines of another implementation",
  async (name) => {
    const both = await fixture.open("embed", towerFolder(name))
    const { pixels, vectors: seen } = expectedTower(name)
    // the last one is read in windows
    const texts = expectedTexts(name).slice(0, -1)
    const files = await Promise.all(
      pixels.map((rgb) => {
        const edge = Math.sqrt(rgb.length / 3)
        return sharp(rgb, { raw: { width: edge, height: edge, channels: 3 } })
          .png()
          .toBuffer()
      }),
    )
    const items = [...files.map(image), ...texts.map(({ text }) => said(text))]
    const { vectors } = await embed(items, both)
    const wanted = [...seen, ...texts.map(({ vector }) => vector)]
    for (const [i, a] of vectors.entries())
      for (const [j, b] of vectors.entries())
        expect(cosine(a, b)).toBeCloseTo(cosine(wanted[i]!, wanted[j]!), 4)
  },
)

test.each([
  [
    "of another space",
    () => [narrow],
    /narrow: its vectors have 24 numbers, those of .*'tiny-bert' 32/,
  ],
  ["beside another", () => [tower, tower], /has 2 vision towers, .* an embedding model takes one/],
  ["that is none", () => [text], /model_type 'bert'/],
])("a tower %s is refused, before it is opened too", async (_, paths, reason) => {
  const adapters = paths().map((path, index) => ({ id: `images${index}`, path }))
  await expect(fixture.open("embed", text, { adapters })).rejects.toThrow(reason)
  await expect(describeAt(text, { adapters })).rejects.toThrow(reason)
})

test("a tower beside the model's own is refused", async () => {
  await expect(fixture.open("embed", towerFolder("clip"), { adapters })).rejects.toThrow(
    /has 2 vision towers/,
  )
})

describe("texts and images in one request", () => {
  test("keep their places, and each has the vector that it has alone", async () => {
    const items = [image(await red()), said("a b"), image(await varied()), said("c")]
    const { vectors, events } = await embed(items)
    expect(events.map(({ truncated }) => truncated)).toEqual([false, false, false, false])
    for (const [at, item] of items.entries()) {
      expect(vectors[at]).toHaveLength(2048)
      expect(Math.hypot(...vectors[at]!)).toBeCloseTo(1, 5)
      expect(gap(vectors[at]!, (await embed([item])).vectors[0]!)).toBeLessThan(1e-5)
    }
    expect(gap(vectors[0]!, vectors[2]!)).toBeGreaterThan(1e-3)
    const withoutTower = await fixture.open("embed", text)
    const [alone] = (await embed([said("a b")], withoutTower)).vectors
    expect(gap(vectors[1]!, alone!)).toBeLessThan(1e-6)
  })

  test("are metered together: tokens of the texts, and the images", async () => {
    const { planned, metered } = await embed([image(await red()), said("a b"), image(await red())])
    expect(planned.bound).toMatchObject({ inputTokens: 4, images: 2 })
    expect(metered.usage.at(-1)).toEqual(planned.bound)
    for (const [at, soFar] of metered.usage.entries())
      expect(soFar.images + Number(soFar.inputTokens > 0)).toBe(at + 1)
    expect(metered.stages).toEqual(expect.arrayContaining(["tokenize", "images", "prefill"]))
  })

  test("an image alone has no tokens", async () => {
    const { planned } = await embed([image(await red())])
    expect(planned.bound).toMatchObject({ inputTokens: 0, images: 1 })
  })

  test("name a text that is too long by its place in the request", async () => {
    const long = said("a ".repeat(99))
    const request = { items: [image(await red()), long], truncate: "NONE" } as const
    const limited = await fixture.open("embed", text, { adapters, contextTokens: 99 })
    expect(await failureOf(limited.task.plan(request, context()))).toMatchObject({
      code: "text_too_long",
      param: "input[1]",
    })
    const tokens = { type: "tokens", ids: Int32Array.of(9_999) } as const
    expect(await failureOf(plan([image(await red()), tokens]))).toMatchObject({
      param: "input[1][0]",
    })
  })
})

describe("images of every kind", () => {
  test("have nearly the vector of a plain one that shows the same", async () => {
    const { "CMYK JPEG": _, ...same } = await unusualImages()
    const [plain] = (await embed([image(await red())])).vectors
    for (const [what, bytes] of Object.entries(same)) {
      const [vector] = (await embed([image(bytes)])).vectors
      expect.soft(gap(vector!, plain!), what).toBeLessThan(0.01)
    }
  })

  test("that are broken fail the request before anything is metered, naming the first", async () => {
    const good = image(await red())
    for (const [what, bytes] of Object.entries(await brokenImages())) {
      const metered = context()
      const items = [said("a"), good, image(bytes), good, image(bytes)]
      const error = await failureOf(plan(items, metered))
      expect.soft(error, what).toMatchObject({
        code: "invalid_request_error",
        param: "input[2]",
        message: expect.stringMatching(/^input\[2\]: the image (has|is|takes) /),
      })
      expect(metered.usage).toEqual([])
    }
  })

  test("are refused where they are no images, or the model has no tower", async () => {
    const sound = { type: "media", mediaType: "audio/wav", bytes: new Uint8Array(9) } as const
    expect(await failureOf(plan([said("a"), sound]))).toMatchObject({
      code: "unsupported_parameter",
      param: "input[1]",
    })
    const alone = await fixture.open("embed", text)
    expect(await failureOf(plan([image(await red())], context(), alone))).toMatchObject({
      code: "unsupported_parameter",
      message: "This model embeds texts only, not images or other media.",
      param: "input[0]",
    })
  })
})
