import { Effect } from "effect"
import sharp from "sharp"
import { afterAll, expect, test } from "vitest"
import type { ImageRequest, LoadedModel } from "../../core/ports/model.ts"
import { sourceIn } from "./diffusion/pipelines/testing/draw.ts"
import { diffusionFolder } from "./diffusion/transformers/testing/run-part.ts"
import { collect, context, openBackend } from "./testing/open-backend.ts"

const backend = openBackend()
afterAll(() => backend.close())

const drawn = async (model: LoadedModel<"image">, more: Partial<ImageRequest> = {}) => {
  const request = { prompt: "a red cat", images: [], width: 64, height: 48, steps: 2, seed: 7 }
  const plan = await Effect.runPromise(
    model.task.plan({ ...request, guidanceScale: 3.5, ...more }, context()),
  )
  const last = (await collect(plan)).at(-1)
  if (last?.type !== "image") throw new Error("it ended without an image")
  return Buffer.from(last.bytes)
}

const pngOf = async (name: string): Promise<Uint8Array> => {
  const { data, width, height } = sourceIn("flux2", name)
  return sharp(data, { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer()
}

test.each([
  ["sd3", 1],
  ["flux", 1],
  ["flux2", 3],
])(
  "%s draws in its own thread: the same for the same request, and another for another",
  async (family, sources) => {
    const model = await backend.open("image", diffusionFolder(family), {
      options: { precision: "fp32" },
    })
    const [first, again, otherSeed, otherPrompt] = [
      await drawn(model),
      await drawn(model),
      await drawn(model, { seed: 8 }),
      await drawn(model, { prompt: "a blue bird" }),
    ]
    const { width, height } = await sharp(first).metadata()
    expect({ width, height }).toEqual({ width: 64, height: 48 })
    expect(again.equals(first)).toBe(true)
    expect(otherSeed.equals(first)).toBe(false)
    expect(otherPrompt.equals(first)).toBe(false)
    const all = await Promise.all([0, 1, 2].map((index) => pngOf(`source.${index}`)))
    const images = all.slice(0, sources)
    const edited = await drawn(model, { images, strength: 0.5 })
    expect(edited.equals(first)).toBe(false)
    expect((await drawn(model, { images, strength: 0.5 })).equals(edited)).toBe(true)
    const others = await drawn(model, { images: all.slice(1, 2), strength: 0.5 })
    expect(others.equals(edited)).toBe(false)
  },
  60_000,
)
