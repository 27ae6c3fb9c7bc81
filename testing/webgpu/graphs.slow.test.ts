import { describe, expect, test } from "vitest"
import { diffusionFolder } from "../../plugins/backend-onnx/diffusion/transformers/testing/run-part.ts"
import { fixtureFolder, towerFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import { openBackend } from "../../plugins/backend-onnx/testing/open-backend.ts"
import { heavyOnCpu, noDevice, testProvider } from "./test-device.ts"

const models = [
  ...["clip", "siglip", "siglip2"].map((name) => ["embed", name, towerFolder(name)] as const),
  ...(["sd", "sd3", "flux", "flux2"] as const).map(
    (name) => ["image", name, diffusionFolder(name)] as const,
  ),
]

describe.skipIf(noDevice)("all graphs of a model open on a device", { timeout: 120_000 }, () => {
  test.each(models)(
    "of %s '%s', no heavy operator on the CPU",
    async (task, _, path) => {
      const { provider, device, log } = testProvider()
      const fixture = openBackend({}, provider)
      const { servedBy } = await fixture.open(task, path)
      await fixture.close()
      expect(servedBy).toBe(`webgpu (${device.name})`)
      expect(heavyOnCpu(log)).toEqual([])
    },
    60_000,
  )
})

test.skipIf(noDevice)(
  "a model of 16-bit floats is opened on the CPU where the device has none",
  async () => {
    const { provider, device } = testProvider()
    const fixture = openBackend({}, provider)
    const options = { precision: "fp16" }
    const { servedBy } = await fixture.open("image", diffusionFolder("sd"), { options })
    await fixture.close()
    expect(servedBy).toBe(device.hasFp16 ? `webgpu (${device.name})` : "webgpu, now cpu")
  },
  60_000,
)

test.skipIf(noDevice)(
  "a chat model on a device is not called reproducible",
  async () => {
    const { provider, device } = testProvider()
    const [there, here] = [openBackend({}, provider), openBackend()]
    const onDevice = await there.open("chat", fixtureFolder("llama"))
    const onCpu = await here.open("chat", fixtureFolder("llama"))
    expect(onDevice.servedBy).toBe(`webgpu (${device.name})`)
    expect(onDevice.stats?.().reproducible).toBe(0)
    expect(onCpu.stats?.().reproducible).toBe(1)
    await there.close()
    await here.close()
  },
  60_000,
)
