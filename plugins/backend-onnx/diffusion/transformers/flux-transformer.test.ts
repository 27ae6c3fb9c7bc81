import { expect, test } from "vitest"
import { floats } from "../../onnx/onnx-session.ts"
import { largestGap } from "../../testing/fixtures.ts"
import { buildFluxTransformer, fluxConfig } from "./flux-transformer.ts"
import { axialTables, gridPositions } from "./rotary-positions.ts"
import { expectedJson, expectedTensors, partConfig, withPart } from "./testing/run-part.ts"

// the weights of these checkpoints fit 16 bits
test.each(["fp32", "fp16"] as const)(
  "predicts what diffusers predicts, in %s",
  async (precision) => {
    const config = fluxConfig(partConfig("flux", "transformer"))
    const tensors = expectedTensors("flux")
    const { transformer } = expectedJson<{
      readonly transformer: {
        readonly timestep: number
        readonly guidance: number
        readonly rows: number
        readonly columns: number
      }
    }>("flux")
    const of = (name: string) => {
      const { data, dims } = tensors.floats(`transformer.${name}`)
      return floats(data, dims)
    }
    const context = of("context")
    const positions = [
      ...Array.from({ length: context.dims[1]! }, () => [0, 0, 0]),
      ...gridPositions(transformer.rows, transformer.columns, (row, column) => [0, row, column]),
    ]
    const tables = axialTables(positions, config.axes, 10_000)
    const shape = [positions.length, tables.cos.length / positions.length]
    const { output } = await withPart(
      ["flux", "transformer"],
      "diffusion_pytorch_model.safetensors",
      (building) => buildFluxTransformer(building, config),
      (session) =>
        session.run({
          latents: of("latents"),
          context,
          pooled: of("pooled"),
          timestep: floats(Float32Array.of(transformer.timestep * 1000), [1]),
          guidance: floats(Float32Array.of(transformer.guidance), [1]),
          cos: floats(tables.cos, shape),
          sin: floats(tables.sin, shape),
        }),
      precision,
    )
    const wanted = tensors.floats("transformer.output")
    expect(output!.dims).toEqual(wanted.dims)
    expect(largestGap(output!.data as Float32Array, wanted.data)).toBeLessThan(1e-4)
  },
)
