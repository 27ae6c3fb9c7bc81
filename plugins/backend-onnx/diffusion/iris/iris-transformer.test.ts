import { describe, expect, it } from "vitest"
import { floats, longs } from "../../onnx/onnx-session.ts"
import { largestGap } from "../../testing/fixtures.ts"
import { expectedTensors, partConfig, withPart } from "../transformers/testing/run-part.ts"
import { gridTables } from "./iris-grid.ts"
import { buildIrisTransformer, irisConfig } from "./iris-transformer.ts"
import { joinedPatches, patchesOf } from "./patches.ts"

const cases = [
  { name: "square", rows: 2, columns: 2, references: 0 },
  { name: "wide", rows: 2, columns: 3, references: 0 },
  { name: "edit", rows: 2, columns: 2, references: 2 },
]
const weights = "diffusion_pytorch_model.safetensors"

/** The largest error of all cases. */
const errorOf = (precision: "fp32" | "fp16" | "int8") => {
  const config = irisConfig(partConfig("iris", "transformer"))
  const tensors = expectedTensors("iris")
  return withPart(
    ["iris", "transformer"],
    weights,
    (building) => buildIrisTransformer(building, config),
    async (session) => {
      const gaps: number[] = []
      for (const { name, rows, columns, references } of cases) {
        const of = (picture: string) => patchesOf(tensors.floats(picture), config.patch)
        const own = of(`${name}.z`)
        const sources = Array.from({ length: references }, (_, i) => of(`${name}.reference.${i}`))
        const latents = joinedPatches([own, ...sources])
        const grid = { rows, columns }
        const count = rows * columns
        const { places, cos, sin, across } = gridTables(grid, 1 + references, {
          frequencies: config.frequencies,
          headSize: config.width / config.heads,
          theta: config.theta,
          sketchGrid: config.sketchGrid,
        })
        const all = count * (1 + references)
        const text = tensors.floats("text")
        const { output } = await session.run({
          latents: floats(latents.data, latents.dims),
          pictures: longs(Array.from({ length: all }, (_, i) => Math.floor(i / count))),
          canvas: longs([count]),
          places: floats(places, [1, all, places.length / all]),
          cos: floats(cos, [all, cos.length / all]),
          sin: floats(sin, [all, sin.length / all]),
          across: floats(across, [all, across.length / all]),
          text: floats(text.data, text.dims),
          timestep: floats(tensors.floats(`${name}.timestep`).data, [1]),
        })
        gaps.push(largestGap(output!.data as Float32Array, of(`${name}.x`).data))
      }
      return Math.max(...gaps)
    },
    precision,
  )
}

describe("the default model's denoiser", () => {
  it("predicts what its recipe predicts, with and without references", async () => {
    expect(await errorOf("fp32")).toBeLessThan(1e-3)
  })

  it("predicts the same in 16 bits, which its weights fit", async () => {
    expect(await errorOf("fp16")).toBeLessThan(1e-3)
  })

  it("stays near it in 8 bits", async () => {
    expect(await errorOf("int8")).toBeLessThan(0.1)
  })
})
