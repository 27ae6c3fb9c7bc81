import { expect, test } from "vitest"
import { floats } from "../../onnx/onnx-session.ts"
import { largestGap } from "../../testing/fixtures.ts"
import { buildFlux2Transformer, flux2Config } from "./flux2-transformer.ts"
import { axialTables, gridPositions } from "./rotary-positions.ts"
import { expectedJson, expectedTensors, partConfig, withPart } from "./testing/run-part.ts"

// the weights of these checkpoints fit 16 bits
test.each(["fp32", "fp16"] as const)(
  "predicts what diffusers predicts, with tokens of a reference, in %s",
  async (precision) => {
    const config = flux2Config(partConfig("flux2", "transformer"))
    const tensors = expectedTensors("flux2")
    const { transformer } = expectedJson<{
      readonly transformer: {
        readonly timestep: number
        readonly rows: number
        readonly columns: number
        readonly reference: readonly [number, number]
      }
    }>("flux2")
    const of = (name: string) => {
      const { data, dims } = tensors.floats(`transformer.${name}`)
      return floats(data, dims)
    }
    const context = of("context")
    const [rows, columns] = transformer.reference
    const positions = [
      ...Array.from({ length: context.dims[1]! }, (_, token) => [0, 0, 0, token]),
      ...gridPositions(transformer.rows, transformer.columns, (y, x) => [0, y, x, 0]),
      ...gridPositions(rows, columns, (y, x) => [10, y, x, 0]),
    ]
    const tables = axialTables(positions, config.axes, config.theta)
    const shape = [positions.length, tables.cos.length / positions.length]
    const { output } = await withPart(
      ["flux2", "transformer"],
      "diffusion_pytorch_model.safetensors",
      (building) => buildFlux2Transformer(building, config),
      (session) =>
        session.run({
          latents: of("latents"),
          context,
          timestep: floats(Float32Array.of(transformer.timestep * 1000), [1]),
          cos: floats(tables.cos, shape),
          sin: floats(tables.sin, shape),
        }),
      precision,
    )
    const wanted = tensors.floats("transformer.output")
    const found = (output!.data as Float32Array).subarray(0, wanted.data.length)
    expect(largestGap(found, wanted.data)).toBeLessThan(1e-4)
  },
)
