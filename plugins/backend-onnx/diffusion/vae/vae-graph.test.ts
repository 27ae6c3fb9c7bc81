import { describe, expect, test } from "vitest"
import { floats } from "../../onnx/onnx-session.ts"
import { largestGap, relativeError } from "../../testing/fixtures.ts"
import type { TensorSource } from "../../weights/tensor-file.ts"
import { expectedTensors, partConfig, withPart } from "../transformers/testing/run-part.ts"
import { fades, inTiles, spansOf } from "./tiles.ts"
import { pixelsOf, vaeConfig } from "./vae-config.ts"
import { buildVaeDecoder, buildVaeEncoder } from "./vae-graph.ts"

const wanted = expectedTensors("sd")
const config = vaeConfig(partConfig("sd", "vae"), "AutoencoderKL")
const unit = pixelsOf(config)
const weights = "diffusion_pytorch_model.safetensors"

/** What both halves of the autoencoder make of the fixture, in tiles of so many latents. */
const decoded = (most: number) =>
  withPart(
    ["sd", "vae"],
    weights,
    (building) => buildVaeDecoder(building, config),
    (session) =>
      inTiles(
        wanted.floats("decoded.latents"),
        { most, inputUnit: 1, outputUnit: unit },
        async ({ data, dims }) => {
          const { pixels } = await session.run({ latents: floats(data, dims) })
          return { data: pixels!.data as Float32Array, dims: pixels!.dims }
        },
      ),
  )

const encoded = (most: number) =>
  withPart(
    ["sd", "vae"],
    weights,
    (building) => buildVaeEncoder(building, config),
    (session) =>
      inTiles(
        wanted.floats("encoded.picture"),
        { most, inputUnit: unit, outputUnit: 1 },
        async ({ data, dims }) => {
          const { latents } = await session.run({ pixels: floats(data, dims) })
          return { data: latents!.data as Float32Array, dims: latents!.dims }
        },
      ),
  )

test("the decoder makes the picture of diffusers", async () => {
  const { data, dims } = await decoded(64)
  const expected = wanted.floats("decoded.whole")
  expect(dims).toEqual(expected.dims)
  expect(largestGap(data, expected.data)).toBeLessThan(1e-4)
})

test("the encoder makes the latents of diffusers", async () => {
  const { data, dims } = await encoded(64)
  const expected = wanted.floats("encoded.whole")
  expect(dims).toEqual(expected.dims)
  expect(largestGap(data, expected.data)).toBeLessThan(1e-4)
})

/** A source whose attention has the names that files of before 2023 have. */
const older = (file: TensorSource): TensorSource => {
  const names = [
    ["query", "to_q"],
    ["key", "to_k"],
    ["value", "to_v"],
    ["proj_attn", "to_out.0"],
  ] as const
  const ownOf = (name: string) =>
    names.reduce((known, [old, own]) => known.replace(`.0.${old}.`, `.0.${own}.`), name)
  return {
    path: file.path,
    names: () => file.names(),
    has: (name) => !names.some(([, own]) => name.includes(`.${own}.`)) && file.has(ownOf(name)),
    tensor: (name) => file.tensor(ownOf(name)),
    rows: (entry, first, count) => file.rows(entry, first, count),
    close: () => file.close(),
  }
}

test("reads the names of older files", async () => {
  const expected = wanted.floats("decoded.whole")
  const pixels = await withPart(
    ["sd", "vae"],
    weights,
    (building) => buildVaeDecoder({ ...building, file: older(building.file) }, config),
    async (session) => {
      const { data, dims } = wanted.floats("decoded.latents")
      return (await session.run({ latents: floats(data, dims) })).pixels!.data as Float32Array
    },
  )
  expect(largestGap(pixels, expected.data)).toBeLessThan(1e-4)
})

describe("tiles", () => {
  test.each([
    [120, 64],
    [65, 64],
    [25, 8],
    [7, 3],
    [1000, 64],
  ])("cover %i positions by equal parts of up to %i, whose weights sum to 1", (size, most) => {
    const spans = spansOf(size, most)
    const sums = new Float32Array(2 * size)
    for (const span of spans) {
      expect(span.size).toBe(spans[0]!.size)
      expect(span.size).toBeLessThanOrEqual(most)
      for (const [index, weight] of fades(span, 2).entries())
        sums[2 * span.start + index]! += weight
    }
    for (const sum of sums) expect(sum).toBeCloseTo(1, 5)
  })

  test("give the whole of what each position becomes alone", async () => {
    const [height, width] = [5, 11]
    const data = Float32Array.from({ length: 2 * height * width }, (_, index) => index)
    const shape = { most: 4, inputUnit: 1, outputUnit: 1 }
    const out = await inTiles({ data, dims: [1, 2, height, width] }, shape, async (tile) => {
      expect(Math.max(...tile.dims)).toBeLessThanOrEqual(4)
      return tile
    })
    expect(out.dims).toEqual([1, 2, height, width])
    expect(largestGap(out.data, data)).toBeLessThan(1e-4)
  })

  test("of a picture are close to the whole", async () => {
    const { data, dims } = await decoded(16)
    const expected = wanted.floats("decoded.whole")
    expect(dims).toEqual(expected.dims)
    expect(relativeError([data], [expected.data])).toBeLessThan(0.3)
    const { data: latents } = await encoded(16)
    expect(relativeError([latents], [wanted.floats("encoded.whole").data])).toBeLessThan(0.3)
  })
})
