import { expect, test } from "vitest"
import { largestGap } from "../../testing/fixtures.ts"
import { stepsOf } from "../engine/paint.ts"
import type { ImageModel } from "../model.ts"
import { diffusionFolder, expectedJson, expectedTensors } from "../transformers/testing/run-part.ts"
import { openSd3 } from "./sd3.ts"
import {
  gapInBytes,
  latentsOf,
  noised,
  type Steps,
  scheduled,
  sourceIn,
  withModel,
} from "./testing/draw.ts"

interface Expected {
  readonly picture: Steps & {
    readonly steps: number
    readonly prompt: string
    readonly negative: string
    readonly guidance: number
    readonly width: number
    readonly height: number
  }
  readonly edit: Steps & { readonly strength: number }
}

const tensors = expectedTensors("sd3")
const { picture, edit } = expectedJson<Expected>("sd3")

// the weights of these checkpoints fit 16 bits
test.each(["fp32", "fp16"] as const)(
  "draws what StableDiffusion3Pipeline draws, and edits by strength, in %s",
  async (precision) => {
    const drawing = async (model: ImageModel) => {
      const { width, height, guidance } = picture
      expect(largestGap(scheduled(model, picture, 3), picture.timesteps)).toBeLessThan(1e-3)
      const condition = await model.encodePrompt(picture.prompt)
      const without = [await model.encodePrompt(picture.negative), guidance] as const
      const noise = tensors.floats("picture.noise")
      expect(model.latentShape(width, height)).toEqual(noise.dims)
      const latents = await latentsOf(model, { ...picture, latents: noise, condition, without })
      expect(largestGap(latents.data, tensors.floats("picture.latents").data)).toBeLessThan(1e-3)
      expect(gapInBytes(await model.decode(latents), tensors.floats("picture.rgb"))).toBeLessThan(
        0.75,
      )

      const steps = stepsOf(picture.steps, edit.strength, model.info.roundsStepsUp)
      expect(steps).toBe(edit.timesteps.length)
      let tiles = 0
      const source = sourceIn("sd3", "edit.source")
      const { start } = await model.encodeSources([source], width, height, async () => void tiles++)
      expect(tiles).toBe(1)
      const begun = noised(start!, tensors.floats("edit.noise"), edit.sigmas[0]!)
      const edited = await latentsOf(model, { ...edit, latents: begun, condition, without })
      expect(gapInBytes(await model.decode(edited), tensors.floats("edit.rgb"))).toBeLessThan(0.75)
    }
    await withModel(openSd3, diffusionFolder("sd3"), drawing, { precision })
  },
)
