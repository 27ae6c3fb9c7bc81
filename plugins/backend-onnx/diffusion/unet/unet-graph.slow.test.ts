import { expect, test } from "vitest"
import { floats } from "../../onnx/onnx-session.ts"
import { largestGap } from "../../testing/fixtures.ts"
import { expectedTensors, partConfig, withPart } from "../transformers/testing/run-part.ts"
import { unetConfig } from "./unet-config.ts"
import { buildUnet } from "./unet-graph.ts"

// the weights of these checkpoints fit 16 bits
test.each([
  ["sd", "fp32"],
  ["sd", "fp16"],
  ["lcm", "fp32"],
  ["lcm", "fp16"],
] as const)(
  "the denoiser of %s makes the values of diffusers, in %s",
  async (family, precision) => {
    const { floats: expected } = expectedTensors(family)
    const config = unetConfig(partConfig(family, "unet"))
    const tensor = (name: string) => {
      const { data, dims } = expected(`unet.${name}`)
      return floats(data, dims)
    }
    const wanted = expected("unet.output")
    const output = await withPart(
      [family, "unet"],
      "diffusion_pytorch_model.safetensors",
      (building) => buildUnet(building, config),
      async (session) =>
        (
          await session.run({
            latents: tensor("latents"),
            context: tensor("context"),
            timestep: floats(Float32Array.of(521), [1]),
            ...(config.guidance && { guidance: tensor("guidance") }),
          })
        ).output!,
      precision,
    )
    expect(output.dims).toEqual(wanted.dims)
    expect(largestGap(output.data as Float32Array, wanted.data)).toBeLessThan(1e-4)
  },
)
