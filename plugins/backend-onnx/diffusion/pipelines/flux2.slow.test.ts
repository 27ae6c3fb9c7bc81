import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { largestGap } from "../../testing/fixtures.ts"
import type { ImageModel } from "../model.ts"
import { diffusionFolder, expectedJson, expectedTensors } from "../transformers/testing/run-part.ts"
import { empiricalShift, openFlux2 } from "./flux2.ts"
import {
  gapInBytes,
  latentsOf,
  type Steps,
  scheduled,
  sourceIn,
  withModel,
} from "./testing/draw.ts"

const tensors = expectedTensors("flux2")
const { picture, guided } = expectedJson<{
  readonly picture: Steps & {
    readonly prompt: string
    readonly width: number
    readonly height: number
  }
  readonly guided: { readonly guidance: number }
}>("flux2")
const latents = tensors.floats("picture.noise")

// the weights of these checkpoints fit 16 bits
test.each(["fp32", "fp16"] as const)(
  "draws what Flux2KleinPipeline draws, with none, one and three references, in %s",
  async (precision) => {
    const drawing = async (model: ImageModel) => {
      const { width, height } = picture
      expect(largestGap(scheduled(model, picture, 3), picture.timesteps)).toBeLessThan(1e-3)
      expect(model.latentShape(width, height)).toEqual(latents.dims)
      expect(model.info).toMatchObject({ guidance: "none", sourcePixels: 1024 ** 2 })
      const prompt = await model.encodePrompt(picture.prompt)
      const pictures = [0, 1, 2].map((index) => sourceIn("flux2", `source.${index}`))
      for (const [name, count] of [
        ["picture", 0],
        ["one", 1],
        ["three", 3],
      ] as const) {
        let tiles = 0
        const pause = async () => void tiles++
        const sources = await model.encodeSources(pictures.slice(0, count), width, height, pause)
        expect(tiles).toBe(count)
        const condition = { ...prompt, ...sources.condition }
        const drawn = await latentsOf(model, { ...picture, latents, condition })
        const gap = gapInBytes(await model.decode(drawn), tensors.floats(`${name}.rgb`))
        expect(gap).toBeLessThan(0.75)
      }
    }
    await withModel(openFlux2, diffusionFolder("flux2"), drawing, { precision })
  },
)

test("is guided where the model is not distilled, one part in memory at a time", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-klein-"))
  cpSync(diffusionFolder("flux2"), folder, { recursive: true })
  const index = join(folder, "model_index.json")
  const json = readFileSync(index, "utf8").replace('"is_distilled": true', '"is_distilled": false')
  writeFileSync(index, json)
  const drawing = async (model: Parameters<Parameters<typeof withModel>[2]>[0]) => {
    expect(model.info.guidance).toBe("twice")
    const condition = await model.encodePrompt(picture.prompt)
    const without = [await model.encodePrompt(""), guided.guidance] as const
    const drawn = await latentsOf(model, { ...picture, latents, condition, without })
    const gap = gapInBytes(await model.decode(drawn), tensors.floats("guided.rgb"))
    expect(gap).toBeLessThan(0.75)
  }
  await withModel(openFlux2, folder, drawing, { offload: true })
  rmSync(folder, { recursive: true, force: true })
})

test("shifts the schedule by the tokens and steps of FLUX.2", () => {
  // from compute_empirical_mu of diffusers
  expect(empiricalShift(4096, 4)).toBeCloseTo(2.29118, 4)
  expect(empiricalShift(8192, 50)).toBeCloseTo(1.84333, 4)
})
