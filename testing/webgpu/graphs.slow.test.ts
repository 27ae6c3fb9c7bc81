import { describe, expect, test } from "vitest"
import { diffusionFolder } from "../../plugins/backend-onnx/diffusion/transformers/testing/run-part.ts"
import { towerFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import { openBackend } from "../../plugins/backend-onnx/testing/open-backend.ts"
import { heavyOnCpu, noDevice, testProvider } from "./test-device.ts"

const models = [
  ...["clip", "siglip", "siglip2"].map((name) => ["embed", name, towerFolder(name)] as const),
  ...(["sd", "sd3", "flux", "flux2"] as const).map(
    (name) => ["image", name, diffusionFolder(name)] as const,
  ),
]

describe.skipIf(noDevice)("all graphs of a model open on a device", () => {
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
