import { expect, test } from "vitest"
import type { ImageModel, ImageModelInfo } from "../model.ts"
import { drawingModel, flowScheduler } from "../testing/drawing-model.ts"
import type { ImageJobEvent, ImageJobRequest } from "./image-job.ts"
import { paint, stepsOf, unpromptedOf } from "./paint.ts"

const request = (more: Partial<ImageJobRequest> = {}): ImageJobRequest => ({
  prompt: "a cat",
  sources: [],
  width: 64,
  height: 48,
  steps: 4,
  seed: 7,
  guidanceScale: 1,
  ...more,
})

const painted = async (
  more: Partial<ImageJobRequest> = {},
  info: Partial<ImageModelInfo> = {},
  made = drawingModel(info),
) => {
  const events: ImageJobEvent[] = []
  let pauses = 0
  await paint(
    { model: made.model, unprompted: unpromptedOf(made.model) },
    request(more),
    (event) => events.push(event),
    async () => void pauses++,
  )
  const last = events.at(-1)
  if (last?.type !== "picture") throw new Error("no picture")
  const stages = events.flatMap((event) => (event.type === "time" ? [event.stage] : []))
  const steps = events.filter((event) => event.type === "step")
  return { events, picture: last.picture, stages, steps, pauses, ...made.drawn }
}

const grey = (value: number) => ({ width: 64, height: 48, data: new Uint8Array(9216).fill(value) })

test("encodes, denoises and decodes, with a pause between the runs of the model", async () => {
  const { calls, stages, steps, pauses, picture } = await painted()
  expect(calls).toEqual(["prompt a cat", "denoise", "denoise", "denoise", "denoise", "decode"])
  expect(stages).toEqual(["encode", "denoise", "decode"])
  expect(steps).toEqual([1, 2, 3, 4].map((step) => ({ type: "step", step, steps: 4 })))
  expect(pauses).toBeGreaterThanOrEqual(5)
  expect([picture.width, picture.height]).toEqual([64, 48])
})

test("pauses between the tiles of sources and of the result, where a job can be cancelled", async () => {
  const edit = { sources: [grey(255)], strength: 1 }
  const { pauses } = await painted(edit)
  expect((await painted(edit, {}, drawingModel({}, { pauses: 3 }))).pauses).toBe(pauses + 6)

  const made = drawingModel({}, { pauses: 3 })
  let left = 4
  const cancelled = paint(
    { model: made.model, unprompted: unpromptedOf(made.model) },
    request(edit),
    () => {},
    async () => {
      if (--left === 0) throw new Error("cancelled")
    },
  )
  await expect(cancelled).rejects.toThrow("cancelled")
  expect(made.drawn.calls).toEqual(["prompt a cat", "sources"])
})

test("guidance runs the model with the prompt and without, and goes beyond the prompt", async () => {
  const plain = await painted({ guidanceScale: 1 })
  const guided = await painted({ guidanceScale: 3 })
  expect(plain.denoised).toHaveLength(4)
  expect(guided.denoised).toHaveLength(8)
  expect(guided.calls.filter((call) => call.startsWith("prompt"))).toEqual([
    "prompt a cat",
    "prompt ",
  ])
  // 0.1 from nothing, three times as far
  expect(plain.picture.data[0]).toBe(Math.round(0.1 * 255))
  expect(Math.abs(guided.picture.data[0]! - 0.3 * 255)).toBeLessThan(1)
})

test("a model whose guidance is an input runs once, and gets the scale", async () => {
  const { denoised } = await painted({ guidanceScale: 3.5 }, { guidance: "input" })
  expect(denoised.map(({ guidance }) => guidance)).toEqual([3.5, 3.5, 3.5, 3.5])
})

test("the LoRA of a request is there in every run", async () => {
  const { denoised, picture } = await painted({ adapter: { id: "dark", strength: 1 } })
  expect(new Set(denoised.map(({ adapter }) => adapter))).toEqual(new Set(["dark"]))
  expect(picture.data[0]).toBe(Math.round(0.2 * 255))
})

test("the LoRA of a request reads its prompt and the empty one, which is kept with it", async () => {
  const { model, drawn } = drawingModel()
  const painter = { model, unprompted: unpromptedOf(model) }
  for (const strength of [1, 1, 0.5, undefined, 1]) {
    const adapter = strength === undefined ? {} : { adapter: { id: "dark", strength } }
    const asked = request({ guidanceScale: 3, steps: 1, ...adapter })
    await paint(
      painter,
      asked,
      () => {},
      async () => {},
    )
  }
  expect(drawn.calls.filter((call) => call.startsWith("prompt"))).toEqual([
    ...["prompt a cat, dark 1", "prompt , dark 1", "prompt a cat, dark 1"],
    ...["prompt a cat, dark 0.5", "prompt , dark 0.5"],
    ...["prompt a cat", "prompt ", "prompt a cat, dark 1"],
  ])
})

test("an empty prompt that failed is encoded again", async () => {
  const { model } = drawingModel()
  let failures = 1
  const unprompted = unpromptedOf({
    ...model,
    encodePrompt: async (...asked) => {
      if (failures-- > 0) throw new Error("out of memory")
      return model.encodePrompt(...asked)
    },
  })
  await expect(unprompted()).rejects.toThrow("out of memory")
  expect(await unprompted()).toHaveProperty("shade")
})

test("an edit starts from its source as late as its strength says; at 0 nothing is left to do", async () => {
  const edit = (strength: number) => painted({ sources: [grey(200)], strength })
  expect((await edit(0.5)).denoised.map(({ timestep }) => timestep)).toHaveLength(2)
  expect((await edit(0.1)).denoised).toHaveLength(1)
  expect((await edit(1)).denoised).toHaveLength(4)
  const kept = await edit(0)
  expect(kept.denoised).toHaveLength(0)
  expect(kept.steps).toEqual([])
  expect(new Set(kept.picture.data)).toEqual(new Set([200]))
})

test("counts the steps of an edit as diffusers does, and runs one where it would run none", () => {
  expect([0, 0.1, 0.25, 0.74, 0.75, 1].map((strength) => stepsOf(4, strength))).toEqual([
    0, 1, 1, 2, 3, 4,
  ])
})

test("rounds the steps of an edit up where the family does", async () => {
  expect([0, 0.1, 0.25, 0.74, 0.75, 1].map((strength) => stepsOf(4, strength, true))).toEqual([
    0, 1, 1, 3, 3, 4,
  ])
  // as Python computes them; 50 * 0.14 is 7.000000000000001, and 50 minus that 43
  const inexact = [stepsOf(10, 0.3, true), stepsOf(50, 0.14, true), stepsOf(100, 0.55, true)]
  expect(inexact).toEqual([3, 7, 56])
  const edit = { sources: [grey(200)], steps: 3, strength: 0.6 }
  expect((await painted(edit)).denoised).toHaveLength(1)
  expect((await painted(edit, { roundsStepsUp: true })).denoised).toHaveLength(2)
})

test("previews are spread over the steps before the last", async () => {
  const shown = async (previews: number, steps = 4) =>
    (await painted({ previews, steps })).steps.flatMap((event) =>
      event.type === "step" && event.preview ? [event.step] : [],
    )
  expect(await shown(0)).toEqual([])
  expect(await shown(1)).toEqual([2])
  expect(await shown(3)).toEqual([1, 2, 3])
  expect(await shown(2, 9)).toEqual([3, 6])
  expect(await shown(3, 1)).toEqual([])
})

test("a model's own previews are of the size asked for, and the picture is decoded once", async () => {
  const made = drawingModel()
  const sides: number[] = []
  const small = { data: new Uint8Array(3), width: 1, height: 1 }
  const model: ImageModel = {
    ...made.model,
    preview: async (_latents, side) => {
      sides.push(side)
      return small
    },
  }
  const asked = { previews: 3, previewSide: 256 }
  const { steps, calls } = await painted(asked, {}, { ...made, model })
  expect(sides).toEqual([256, 256, 256])
  expect(steps[0]).toMatchObject({ preview: small })
  expect(calls.filter((call) => call === "decode")).toHaveLength(1)
})

test("the same seed gives the same bytes, another one others, and previews change nothing", async () => {
  // a velocity taken for a picture: what comes out depends on the noise
  const info = { scheduler: new Map([...flowScheduler, ["prediction_type", "sample"]]) }
  const bytes = async (more: Partial<ImageJobRequest>) =>
    Buffer.from((await painted({ steps: 3, ...more }, info)).picture.data).toString("base64")
  const first = await bytes({})
  expect(await bytes({})).toBe(first)
  expect(await bytes({ previews: 2 })).toBe(first)
  expect(await bytes({ seed: 8 })).not.toBe(first)
})

test("sizes are rounded up to what the model can, also for an edit", async () => {
  const { picture } = await painted({ width: 72, height: 40 })
  expect([picture.width, picture.height]).toEqual([80, 48])
})

test("numbers that are out of bounds fail the picture, not make it black", async () => {
  const made = drawingModel()
  const model = {
    ...made.model,
    denoise: async () => ({ data: new Float32Array(48).fill(Number.NaN), dims: [1, 1, 6, 8] }),
  }
  await expect(painted({}, {}, { ...made, model })).rejects.toThrow("out of bounds")
})
