import { expect, test } from "vitest"
import { floats } from "../../onnx/onnx-session.ts"
import { largestGap } from "../../testing/fixtures.ts"
import { buildSd3Transformer, sd3Config } from "./sd3-transformer.ts"
import { expectedJson, expectedTensors, partConfig, withPart } from "./testing/run-part.ts"

// the weights of these checkpoints fit 16 bits
test.each(["fp32", "fp16"] as const)(
  "predicts what diffusers predicts, with a block of two attentions, in %s",
  async (precision) => {
    const config = sd3Config(partConfig("sd3", "transformer"))
    const tensors = expectedTensors("sd3")
    const { transformer } = expectedJson<{ readonly transformer: { readonly timestep: number } }>(
      "sd3",
    )
    const of = (name: string) => {
      const { data, dims } = tensors.floats(`transformer.${name}`)
      return floats(data, dims)
    }
    const { output } = await withPart(
      ["sd3", "transformer"],
      "diffusion_pytorch_model.safetensors",
      (building) => buildSd3Transformer(building, config),
      (session) =>
        session.run({
          latents: of("latents"),
          context: of("context"),
          pooled: of("pooled"),
          timestep: floats(Float32Array.of(transformer.timestep), [1]),
        }),
      precision,
    )
    const wanted = tensors.floats("transformer.output")
    expect(output!.dims).toEqual(wanted.dims)
    expect(largestGap(output!.data as Float32Array, wanted.data)).toBeLessThan(1e-4)
  },
)
