import { expect, test } from "vitest"
import { largestGap } from "../../testing/fixtures.ts"
import type { Condition, ImageModel, Tensor } from "../model.ts"
import { openSchedule } from "../schedulers/open-schedule.ts"
import { mixed } from "../schedulers/schedule.ts"
import { diffusionFolder, expectedJson, expectedTensors } from "../transformers/testing/run-part.ts"
import { openStableDiffusion } from "./stable-diffusion.ts"
import { gapInBytes, sourceIn, withModel } from "./testing/draw.ts"

interface Expected {
  readonly picture: {
    readonly prompt: string
    readonly steps: number
    readonly guidance: number
    readonly width: number
    readonly height: number
  }
}

/** Conditions with the prompt and without, as far as the model has guidance. */
const conditionsOf = async (model: ImageModel, prompt: string) => {
  const own = await model.encodePrompt(prompt)
  return model.info.guidance === "twice" ? [own, await model.encodePrompt("")] : [own]
}

/** Steps of the model's own schedule from `first` on, with the noise of the reference. */
const drawn = async (
  model: ImageModel,
  [own, without]: readonly Condition[],
  { steps, guidance }: Expected["picture"],
  { dims, data }: Tensor,
  { first = 0, noises = [] }: { readonly first?: number; readonly noises?: Float32Array[] } = {},
): Promise<Tensor> => {
  const schedule = openSchedule(model.info.scheduler, { steps, tokens: model.tokensIn(dims) })
  let latents = first === 0 ? data.map((value) => value * schedule.noiseScale) : data
  for (let step = first; step < steps; step++) {
    const run = async (condition: Condition) => {
      const input = { dims, data: schedule.input(latents, step) }
      return (await model.denoise(input, schedule.timesteps[step]!, condition, guidance)).data
    }
    const wanted = await run(own!)
    const output = without ? mixed(guidance, wanted, 1 - guidance, await run(without)) : wanted
    latents = schedule.next(latents, output, step, () => noises.shift()!).latents
  }
  return { dims, data: latents }
}

// the weights of these checkpoints fit 16 bits
test.each(["fp32", "fp16"] as const)(
  "draws what StableDiffusionPipeline draws, and edits by strength, in %s",
  async (precision) => {
    const tensors = expectedTensors("sd")
    const { picture } = expectedJson<Expected>("sd")
    const drawing = async (model: ImageModel) => {
      const { prompt, width, height, steps } = picture
      const conditions = await conditionsOf(model, prompt)
      const noise = tensors.floats("picture.noise")
      expect(model.latentShape(width, height)).toEqual(noise.dims)
      const latents = await drawn(model, conditions, picture, noise)
      expect(largestGap(latents.data, tensors.floats("picture.latents").data)).toBeLessThan(1e-3)
      const rgb = tensors.floats("picture.rgb")
      expect(gapInBytes(await model.decode(latents), rgb)).toBeLessThan(0.75)
      const small = { width: width / 2, height: height / 2 }
      expect(await model.preview!(latents, Math.max(small.width, small.height))).toMatchObject(
        small,
      )

      let tiles = 0
      const source = sourceIn("sd", "edit.source")
      const { start } = await model.encodeSources([source], width, height, async () => void tiles++)
      expect(tiles).toBe(1)
      const schedule = openSchedule(model.info.scheduler, { steps, tokens: 1 })
      // a strength of 0.7 runs the last 2 of 4 steps
      const first = 2
      const { data } = tensors.floats("edit.noise")
      const begun = { dims: noise.dims, data: schedule.noised(start!.data, data, first) }
      const edited = await drawn(model, conditions, picture, begun, { first })
      expect(gapInBytes(await model.decode(edited), tensors.floats("edit.rgb"))).toBeLessThan(0.75)
    }
    await withModel(openStableDiffusion, diffusionFolder("sd"), drawing, { precision })
  },
)

test("draws what a model draws that takes its guidance, with noise on the way", async () => {
  const tensors = expectedTensors("lcm")
  const { picture } = expectedJson<Expected>("lcm")
  await withModel(openStableDiffusion, diffusionFolder("lcm"), async (model) => {
    expect(model.info.guidance).toBe("input")
    const conditions = await conditionsOf(model, picture.prompt)
    const noises = [0, 1, 2].map((step) => tensors.floats(`picture.drawn.${step}`).data)
    const noise = tensors.floats("picture.noise")
    const latents = await drawn(model, conditions, picture, noise, { noises })
    expect(largestGap(latents.data, tensors.floats("picture.latents").data)).toBeLessThan(1e-3)
    const rgb = tensors.floats("picture.rgb")
    expect(gapInBytes(await model.decode(latents), rgb)).toBeLessThan(0.75)
  })
})

test("LoRAs of the text encoder change what it reads, and nothing stays of them", async () => {
  const { text } = expectedJson<{ readonly text: { readonly prompt: string } }>("sd")
  const wanted = expectedTensors("lora/sd", "text-expected")
  const adapters = ["text-peft", "text-kohya", "peft"].map((id) => ({
    id,
    path: diffusionFolder("lora", "sd", `${id}.safetensors`),
  }))
  const reading = async (model: ImageModel) => {
    const read = async (id?: string, strength = 1) => {
      const { context } = await model.encodePrompt(text.prompt, id ? { id, strength } : undefined)
      return context!.data
    }
    const none = await read()
    expect(largestGap(none, expectedTensors("sd").floats("text.states").data)).toBeLessThan(1e-4)
    for (const [id, strength, name] of [
      ["text-peft", 1, "peft"],
      ["text-peft", 0.5, "half"],
      ["text-kohya", 1, "kohya"],
    ] as const) {
      const { data } = wanted.floats(name)
      expect(largestGap(none, data)).toBeGreaterThan(0.05)
      expect(largestGap(await read(id, strength), data)).toBeLessThan(2e-4)
      expect(await read()).toEqual(none)
    }
    expect(await read("text-peft", 0)).toEqual(none)
    // that one adapts the denoiser alone
    expect(await read("peft")).toEqual(none)
  }
  await withModel(openStableDiffusion, diffusionFolder("sd"), reading, { adapters })
})
