import { join } from "node:path"
import { Effect } from "effect"
import sharp from "sharp"
import { describe, expect, test } from "vitest"
import { diffusionFolder } from "../../plugins/backend-onnx/diffusion/transformers/testing/run-part.ts"
import { collect, context, openBackend } from "../../plugins/backend-onnx/testing/open-backend.ts"
import { noDevice, testProvider } from "./test-device.ts"

const folder = diffusionFolder("flux")
const adapters = [{ id: "dark", path: join(folder, "..", "lora", "flux", "peft.safetensors") }]

/** Grey levels of a picture with the LoRA and of one without. */
const drawn = async (fixture: ReturnType<typeof openBackend>) => {
  const model = await fixture.open("image", folder, { options: { precision: "fp32" }, adapters })
  const { servedBy } = model
  const draw = async (more: object) => {
    const size = { images: [], width: 32, height: 32, steps: 2, seed: 1, guidanceScale: 1 }
    const plan = await Effect.runPromise(
      model.task.plan({ prompt: "a cat", ...size, ...more }, context()),
    )
    const last = (await collect(plan)).at(-1)
    if (last?.type !== "image") throw new Error("no picture")
    return sharp(last.bytes).raw().toBuffer()
  }
  const plain = await draw({})
  const dark = await draw({ adapter: { id: "dark", strength: 1 } })
  await fixture.close()
  return { servedBy, plain, dark }
}

const gap = (a: Buffer, b: Buffer): number =>
  a.reduce((sum, level, i) => sum + Math.abs(level - b[i]!), 0) / a.length

describe.skipIf(noDevice)("pictures with LoRAs on a device", { timeout: 240_000 }, () => {
  test("are those of the CPU, and so are pictures of the same model without", async () => {
    const { provider, device } = testProvider()
    const there = await drawn(openBackend({}, provider))
    const here = await drawn(openBackend())
    expect(there.servedBy).toBe(`webgpu (${device.name})`)
    expect(gap(there.plain, here.plain)).toBeLessThan(1)
    expect(gap(there.dark, here.dark)).toBeLessThan(1)
    expect(gap(here.plain, here.dark)).toBeGreaterThan(1)
  })
})
