import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { encoderFolder, largestGap } from "../../testing/fixtures.ts"
import { textEncoderId } from "../folder/pipeline-folder.ts"
import { gridOf } from "../iris/iris-grid.ts"
import { patchesOf, pictureOf } from "../iris/patches.ts"
import type { ImageModel, Tensor } from "../model.ts"
import { openSchedule } from "../schedulers/open-schedule.ts"
import { diffusionFolder, expectedTensors } from "../transformers/testing/run-part.ts"
import { openIris } from "./iris.ts"

const patch = 16
const tensors = expectedTensors("iris")

// the weights of its checkpoint fit 16 bits, those of the text encoder don't
describe.each(["fp32", "fp16"] as const)("the default image model in %s", (precision) => {
  const graphs = mkdtempSync(join(tmpdir(), "rakit-iris-"))
  let model: ImageModel
  beforeAll(async () => {
    model = await openIris(diffusionFolder("iris"), {
      graphs,
      threads: 1,
      precision,
      offload: false,
      tileSize: 1024,
      adapters: [
        { id: "look", path: diffusionFolder("iris", "lora.safetensors") },
        { id: textEncoderId, path: encoderFolder("bert") },
      ],
      adapterBytes: 2 ** 20,
      progress: () => {},
    })
  })
  afterAll(async () => {
    await model?.close()
    rmSync(graphs, { recursive: true, force: true })
  })

  it("draws the canvas of its recipe by four Euler steps from the same noise", async () => {
    const condition = await model.encodePrompt("a red cat beside a tree")
    const textGap = precision === "fp16" ? 0.01 : 1e-4
    expect(largestGap(condition.text!.data, tensors.floats("text").data)).toBeLessThan(textGap)
    let z: Tensor = patchesOf(tensors.floats("picture.noise"), patch)
    const { info, tokensIn } = model
    const schedule = openSchedule(info.scheduler, {
      steps: 4,
      tokens: tokensIn(z.dims),
      evenSigmas: info.evenSigmas === true,
    })
    const noNoise = () => new Float32Array()
    for (const [step, timestep] of schedule.timesteps.entries()) {
      const { data } = await model.denoise(z, timestep, condition)
      z = { dims: z.dims, data: schedule.next(z.data, data, step, noNoise).latents }
    }
    const canvas = pictureOf(z).data.map((value) => Math.min(1, Math.max(-1, value)))
    const canvasGap = precision === "fp16" ? 0.02 : 1e-3
    expect(largestGap(canvas, tensors.floats("picture.canvas").data)).toBeLessThan(canvasGap)
  })

  it("has its text encoder as a part, which is no LoRA", () => {
    expect(model.info).toMatchObject({ parts: [textEncoderId], adapters: ["look"] })
  })

  it("takes a LoRA of its recipe at any strength, and none again", async () => {
    const z = patchesOf(tensors.floats("square.z"), patch)
    const timestep = tensors.floats("square.timestep").data[0]!
    const drawn = async (strength?: number) => {
      const adapter = strength === undefined ? undefined : { id: "look", strength }
      const text = { text: tensors.floats("text") }
      const { data, dims } = await model.denoise(z, timestep, text, 1, adapter)
      return pictureOf({ data: Float32Array.from(data), dims }).data
    }
    const wanted = (name: string) => tensors.floats(name).data
    const none = await drawn()
    expect(largestGap(none, wanted("square.x"))).toBeLessThan(1e-3)
    expect(largestGap(wanted("lora.0.3"), none)).toBeGreaterThan(0.1)
    expect(largestGap(await drawn(0.3), wanted("lora.0.3"))).toBeLessThan(1e-3)
    expect(largestGap(await drawn(1.5), wanted("lora.1.5"))).toBeLessThan(1e-3)
    expect(await drawn(0)).toEqual(none)
    expect(await drawn()).toEqual(none)
  })

  it("decodes eight times as large", async () => {
    const latents = patchesOf(tensors.floats("picture.noise"), patch)
    const { data, width, height } = await model.decode(latents)
    expect([data.length, width, height]).toEqual([3 * 384 * 512, 512, 384])
    expect(await model.preview!(latents, 64)).toMatchObject({ width: 64, height: 48 })
  })

  it("shows sources to every step, and starts from the first", async () => {
    const plain = (value: number, width: number, height: number) => ({
      data: new Uint8Array(3 * width * height).fill(value),
      width,
      height,
    })
    const sources = [plain(255, 40, 40), plain(0, 64, 32)]
    const { start, condition } = await model.encodeSources(sources, 64, 64)
    expect(start!.dims).toEqual(model.latentShape(64, 64))
    expect(start!.data.every((value) => value === 1)).toBe(true)
    expect(condition.references!.dims).toEqual([1, 128, 768])
    // the wide one has white above and below
    const second = condition.references!.data.subarray(64 * 768)
    expect([second[0], second[32 * 768]]).toEqual([1, -1])
    const text = await model.encodePrompt("a tree")
    const seen = await model.denoise(start!, 500, { ...text, ...condition })
    const alone = await model.denoise(start!, 500, text)
    expect(seen.dims).toEqual(start!.dims)
    expect(largestGap(seen.data, alone.data)).toBeGreaterThan(0.01)
  })

  it("cuts a prompt that is too long", async () => {
    const { text } = await model.encodePrompt("tree ".repeat(300))
    expect(text!.dims[1]).toBe(64)
  })
})

it.each([
  [768, 768, 8, 8],
  [960, 640, 6, 9],
  [640, 960, 9, 6],
  [960, 544, 6, 11],
  [960, 64, 2, 30],
])("draws %i x %i on a grid of its proportions", (width, height, rows, columns) => {
  expect(gridOf(width, height)).toEqual({ rows, columns })
})
