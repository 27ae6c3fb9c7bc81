import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Fiber, Stream } from "effect"
import { afterAll, expect, test } from "vitest"
import type { ImageRequest, LoadedModel } from "../../core/ports/model.ts"
import { imageModelContract } from "../../testing/contracts/model.ts"
import { diffusionFolder } from "./diffusion/transformers/testing/run-part.ts"
import { collect, context, failureOf, openBackend } from "./testing/open-backend.ts"

const fixture = openBackend({ queue: 1 })
const root = mkdtempSync(join(tmpdir(), "rakit-images-"))
afterAll(async () => {
  await fixture.close()
  rmSync(root, { recursive: true, force: true })
})

const folder = diffusionFolder("flux")
const lora = join(folder, "..", "lora", "flux", "peft.safetensors")
const request = (more: Partial<ImageRequest> = {}): ImageRequest => ({
  prompt: "a cat",
  images: [],
  width: 64,
  height: 64,
  steps: 3,
  seed: 1,
  guidanceScale: 1,
  ...more,
})
const open = (options = {}) =>
  fixture.open("image", folder, {
    options: { precision: "fp32", ...options },
    adapters: [{ id: "dark", path: lora }],
  })

const drawn = async (
  model: LoadedModel<"image">,
  more: Partial<ImageRequest> = {},
  metered = context(),
): Promise<string> => {
  const plan = await Effect.runPromise(model.task.plan(request(more), metered))
  const last = (await collect(plan)).at(-1)
  if (last?.type !== "image") throw new Error("no picture")
  return Buffer.from(last.bytes).toString("base64")
}

const refusal = (model: LoadedModel<"image">, more: Partial<ImageRequest>) =>
  failureOf(model.task.plan(request(more), context()))

test("says what a model can before it is opened, and reports the stages of a picture", async () => {
  const { description } = await fixture.backend.describe!({
    id: "m",
    task: "image",
    path: folder,
    options: {},
    contextTokens: 2_000,
  }).pipe(
    Effect.map((description) => ({ description })),
    Effect.runPromise,
  )
  const model = await open()
  const { contextTokens, modalities, capabilities } = model
  expect(description).toEqual({ contextTokens: 2_000, modalities, capabilities })
  expect(contextTokens).toBe(1_000_000)
  expect(model.adapters).toEqual(["dark"])
  const metered = context()
  await drawn(model, {}, metered)
  expect(metered.stages).toEqual(["queue", "encode", "denoise", "decode", "png"])
  expect(metered.usage.map(({ images }) => images)).toEqual([1])
})

test.each(["fp16", "fp32"])(
  "none, dark, none is bit-identical in %s, and so are both side by side",
  async (precision) => {
    const model = await open({ precision })
    const dark = { adapter: { id: "dark", strength: 1 } }
    const plain = await drawn(model)
    const darkened = await drawn(model, dark)
    expect(darkened).not.toBe(plain)
    expect(await drawn(model, { adapter: { id: "dark", strength: 0 } })).toBe(plain)
    expect(await drawn(model)).toBe(plain)
    expect(await Promise.all([drawn(model, dark), drawn(model)])).toEqual([darkened, plain])
  },
)

test("what a request has that the model can't do is refused by name", async () => {
  const model = await open()
  expect(await refusal(model, { adapter: { id: "anime", strength: 1 } })).toMatchObject({
    code: "invalid_request_error",
    param: "lora",
  })
  expect(await refusal(model, { images: [Buffer.from("no picture")] })).toMatchObject({
    code: "invalid_request_error",
    param: "images[0]",
  })
  const picture = Buffer.from(await drawn(model), "base64")
  expect(await refusal(model, { images: [picture, picture] })).toMatchObject({
    code: "unsupported_parameter",
    param: "images",
    message: expect.stringContaining("one image"),
  })
})

test("more steps than a consistency model was distilled from are refused before it works", async () => {
  const few = join(root, "few-steps")
  cpSync(diffusionFolder("lcm"), few, { recursive: true })
  const scheduler = { _class_name: "LCMScheduler", original_inference_steps: 8 }
  writeFileSync(join(few, "scheduler/scheduler_config.json"), JSON.stringify(scheduler))
  const model = await fixture.open("image", few, { options: { precision: "fp32" } })
  expect(await refusal(model, { steps: 9 })).toMatchObject({
    code: "invalid_request_error",
    message: "This model draws in at most 8 steps, not 9.",
    param: "num_steps",
  })
  expect(await drawn(model, { steps: 8 })).toBeTruthy()
})

test("a picture larger than the places that a model knows is refused before it works", async () => {
  const model = await fixture.open("image", diffusionFolder("sd3"), {
    options: { precision: "fp32" },
  })
  // 12 patches of 2 latents, each of them 4 pixels
  const most = 96
  expect(await refusal(model, { width: 16, height: most + 16 })).toMatchObject({
    code: "invalid_request_error",
    message: `This model draws at most ${most} x ${most} pixels, not 16 x ${most + 16}.`,
    param: "size",
  })
  expect(await drawn(model, { width: most, height: 16 })).toBeTruthy()
})

test("beyond the slots and the queue a request is busy, also for a batch; a cancel makes room", async () => {
  const model = await open({ slots: 1 })
  const start = async () => {
    const plan = await Effect.runPromise(model.task.plan(request({ steps: 50 }), context()))
    return Effect.runFork(Stream.runDrain(plan.run))
  }
  const running = [await start(), await start()]
  expect(await refusal(model, {})).toMatchObject({ code: "backend_busy" })
  await Effect.runPromise(Fiber.interruptAll(running))
  await drawn(model)
  const impatient = await open({ slots: 1, queueWaitMs: 0 })
  const plan = await Effect.runPromise(impatient.task.plan(request({ steps: 50 }), context()))
  const alone = Effect.runFork(Stream.runDrain(plan.run))
  expect(await refusal(impatient, {})).toMatchObject({ code: "backend_busy" })
  await Effect.runPromise(Fiber.interrupt(alone))
})

test("a picture that is not ready at its deadline is a time-out, and not charged", async () => {
  const model = await open()
  const metered = context({ deadlineMs: 0 })
  const plan = await Effect.runPromise(model.task.plan(request({ steps: 50 }), metered))
  expect(await failureOf(Stream.runDrain(plan.run))).toMatchObject({ code: "backend_timeout" })
  expect(metered.usage).toEqual([])
})

test("a folder that can't be opened is refused with its reason", async () => {
  const changed = (name: string, file: string, content: string) => {
    const copy = join(root, name)
    cpSync(folder, copy, { recursive: true })
    writeFileSync(join(copy, file), content)
    return fixture.failure("image", copy)
  }
  expect(
    await changed("class", "model_index.json", '{"_class_name":"KolorsPipeline"}'),
  ).toMatchObject({
    message: expect.stringMatching(/KolorsPipeline.*FluxPipeline/),
  })
  expect(
    await changed(
      "schedule",
      "scheduler/scheduler_config.json",
      '{"_class_name":"HeunDiscreteScheduler"}',
    ),
  ).toMatchObject({ message: expect.stringMatching(/scheduler_config.json.*HeunDiscrete/) })
  expect(fixture.backend.check("image", { slots: 0 })).toContain("options.slots")
  expect(fixture.backend.check("image", { offload: true, tileSize: 512 })).toBeUndefined()
})

test("LoRAs that take more memory than they may, or are none, are refused by their headers, too", async () => {
  const small = openBackend({ adapterMemoryMb: 0.01 })
  const said = async (path: string) => {
    const adapters = [{ id: "dark", path }]
    const describe = small.backend.describe!({
      ...{ id: "m", task: "image", path: folder, adapters, options: {}, contextTokens: 9 },
    })
    const { message } = await failureOf(describe)
    const failure = await small.failure("image", folder, { adapters })
    expect(failure.message).toContain(message)
    return message
  }
  expect(await said(lora)).toMatch(/with it the adapters of the model take 1 MB, the most is 0/)
  const empty = mkdtempSync(join(root, "empty-"))
  expect(await said(empty)).toMatch(/it has neither adapter_model\.safetensors nor/)
  const vae = join(diffusionFolder("flux"), "vae", "diffusion_pytorch_model.safetensors")
  expect(await said(vae)).toMatch(/which is none of a plain LoRA/)
  await small.close()
})

for (const name of ["sd3", "flux", "flux2"])
  imageModelContract(`the checkpoint '${name}'`, async () => {
    const fixture = openBackend()
    const loaded = await fixture.open("image", diffusionFolder(name))
    return { id: "m", loaded, close: fixture.close }
  })

test("offload draws the same, one picture after the other", { timeout: 120_000 }, async () => {
  const wanted = await drawn(await open())
  const offloaded = await open({ offload: true })
  expect(wanted).toMatch(/^iVBOR/)
  expect(await Promise.all([drawn(offloaded), drawn(offloaded)])).toEqual([wanted, wanted])
})
