import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { largestGap } from "../../testing/fixtures.ts"
import { stepsOf } from "../engine/paint.ts"
import type { ImageModel, Tensor } from "../model.ts"
import { diffusionFolder, expectedJson, expectedTensors } from "../transformers/testing/run-part.ts"
import { openFlux } from "./flux.ts"
import { mapOf, patched, tokensOf, unpatched } from "./packing.ts"
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
    readonly guidance: number
    readonly width: number
    readonly height: number
  }
  readonly edit: Steps & { readonly strength: number }
  readonly kontext: Steps & { readonly width: number; readonly height: number }
}

const tensors = expectedTensors("flux")
const { picture, edit, kontext } = expectedJson<Expected>("flux")

/** Packed latents of a reference, `[1,S,4C]`, as latents `[1,C,H,W]`. */
const unpacked = ({ data }: Tensor, [, channels, rows, columns]: readonly number[]): Tensor =>
  unpatched(mapOf(data, [1, 4 * channels!, rows! / 2, columns! / 2]))

// the weights of these checkpoints fit 16 bits
test.each(["fp32", "fp16"] as const)(
  "draws what FluxPipeline draws, and edits by strength, in %s",
  async (precision) => {
    const drawing = async (model: ImageModel) => {
      const { width, height, guidance } = picture
      expect(largestGap(scheduled(model, picture, 3), picture.timesteps)).toBeLessThan(1e-3)
      const condition = await model.encodePrompt(picture.prompt)
      const noise = unpacked(tensors.floats("picture.noise"), model.latentShape(width, height))
      const latents = await latentsOf(model, { ...picture, latents: noise, condition, guidance })
      const packed = tokensOf(patched(latents))
      expect(largestGap(packed.data, tensors.floats("picture.latents").data)).toBeLessThan(1e-3)
      expect(gapInBytes(await model.decode(latents), tensors.floats("picture.rgb"))).toBeLessThan(
        0.75,
      )

      const steps = stepsOf(picture.steps, edit.strength, model.info.roundsStepsUp)
      expect(steps).toBe(edit.timesteps.length)
      let tiles = 0
      const source = sourceIn("flux", "edit.source")
      const { start } = await model.encodeSources([source], width, height, async () => void tiles++)
      expect(tiles).toBe(1)
      const begun = noised(start!, tensors.floats("edit.noise"), edit.sigmas[0]!)
      const edited = await latentsOf(model, { ...edit, latents: begun, condition, guidance })
      expect(gapInBytes(await model.decode(edited), tensors.floats("edit.rgb"))).toBeLessThan(0.75)
    }
    await withModel(openFlux, diffusionFolder("flux"), drawing, { precision })
  },
)

test("sees a reference as FluxKontextPipeline does", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-kontext-"))
  cpSync(diffusionFolder("flux"), folder, { recursive: true })
  const index = join(folder, "model_index.json")
  writeFileSync(index, readFileSync(index, "utf8").replace("FluxPipeline", "FluxKontextPipeline"))
  await withModel(openFlux, folder, async (model) => {
    const { width, height } = kontext
    expect(largestGap(scheduled(model, kontext, 3), kontext.timesteps)).toBeLessThan(1e-3)
    const sources = await model.encodeSources([sourceIn("flux", "kontext.source")], width, height)
    expect(sources.start).toBeUndefined()
    const condition = { ...(await model.encodePrompt(picture.prompt)), ...sources.condition }
    const noise = unpacked(tensors.floats("kontext.noise"), model.latentShape(width, height))
    const { guidance } = picture
    const latents = await latentsOf(model, { ...kontext, latents: noise, condition, guidance })
    expect(gapInBytes(await model.decode(latents), tensors.floats("kontext.rgb"))).toBeLessThan(
      0.75,
    )
  })
  rmSync(folder, { recursive: true, force: true })
})
