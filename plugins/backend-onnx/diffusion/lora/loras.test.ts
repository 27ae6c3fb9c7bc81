import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { floats } from "../../onnx/onnx-session.ts"
import { largestGap } from "../../testing/fixtures.ts"
import { type PartGraph, Parts } from "../folder/part.ts"
import { buildFluxTransformer, fluxConfig } from "../transformers/flux-transformer.ts"
import { buildFlux2Transformer, flux2Config } from "../transformers/flux2-transformer.ts"
import { axialTables, gridPositions } from "../transformers/rotary-positions.ts"
import { buildSd3Transformer, sd3Config } from "../transformers/sd3-transformer.ts"
import { diffusionFolder, expectedTensors, partConfig } from "../transformers/testing/run-part.ts"
import { type AdaptedPart, openAdapted } from "./adapted-parts.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-loras-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

type Feeds = Parameters<AdaptedPart["run"]>[0]

const inputOf = (family: string, name: string) => {
  const { data, dims } = expectedTensors(family).floats(`transformer.${name}`)
  return floats(data, dims)
}

const rotary = (
  positions: readonly (readonly number[])[],
  axes: readonly number[],
  theta: number,
) => {
  const { cos, sin } = axialTables(positions, axes, theta)
  const shape = [positions.length, cos.length / positions.length]
  return { cos: floats(cos, shape), sin: floats(sin, shape) }
}

const repeated = (count: number, of: (index: number) => readonly number[]) =>
  Array.from({ length: count }, (_, index) => of(index))

interface Family {
  readonly name: string
  readonly graph: PartGraph
  feeds(): Feeds
}

const graphOf = (family: string, build: PartGraph["build"]): PartGraph => ({
  name: "transformer",
  path: diffusionFolder(family, "transformer"),
  key: [family],
  build,
})

const flux = fluxConfig(partConfig("flux", "transformer"))
const flux2 = flux2Config(partConfig("flux2", "transformer"))
const sd3 = sd3Config(partConfig("sd3", "transformer"))

const families: readonly Family[] = [
  {
    name: "sd3",
    graph: graphOf("sd3", (building) => buildSd3Transformer(building, sd3)),
    feeds: () => ({
      latents: inputOf("sd3", "latents"),
      context: inputOf("sd3", "context"),
      pooled: inputOf("sd3", "pooled"),
      timestep: floats(Float32Array.of(700), [1]),
    }),
  },
  {
    name: "flux",
    graph: graphOf("flux", (building) => buildFluxTransformer(building, flux)),
    feeds: () => ({
      latents: inputOf("flux", "latents"),
      context: inputOf("flux", "context"),
      pooled: inputOf("flux", "pooled"),
      timestep: floats(Float32Array.of(700), [1]),
      guidance: floats(Float32Array.of(2.5), [1]),
      ...rotary(
        [...repeated(9, () => [0, 0, 0]), ...gridPositions(4, 6, (y, x) => [0, y, x])],
        flux.axes,
        10_000,
      ),
    }),
  },
  {
    name: "flux2",
    graph: graphOf("flux2", (building) => buildFlux2Transformer(building, flux2)),
    feeds: () => ({
      latents: inputOf("flux2", "latents"),
      context: inputOf("flux2", "context"),
      timestep: floats(Float32Array.of(700), [1]),
      ...rotary(
        [
          ...repeated(9, (token) => [0, 0, 0, token]),
          ...gridPositions(4, 6, (y, x) => [0, y, x, 0]),
          ...gridPositions(2, 3, (y, x) => [10, y, x, 0]),
        ],
        flux2.axes,
        flux2.theta,
      ),
    }),
  },
]

const partsOf = (
  adapters: readonly { readonly id: string; readonly path: string }[],
  adapterBytes = 2 ** 24,
) =>
  new Parts({
    graphs: join(root, "graphs"),
    threads: 1,
    precision: "fp32",
    offload: false,
    adapters,
    adapterBytes,
    progress: () => {},
  })

const loraFile = (family: string, name: string): string =>
  diffusionFolder("lora", family, `${name}.safetensors`)

describe.each(families)("LoRAs of $name", ({ name, graph, feeds }) => {
  const expected = expectedTensors(`lora/${name}`)
  const parts = partsOf(["peft", "kohya"].map((id) => ({ id, path: loraFile(name, id) })))
  let part: AdaptedPart
  beforeAll(async () => {
    const { parts: opened, info } = await openAdapted(parts, { denoiser: graph })
    part = opened.denoiser
    expect(info.adapters).toEqual(["peft", "kohya"])
    expect(info.adapterBytes).toBeGreaterThan(10_000)
  })
  afterAll(() => parts.close())

  const ran = async (id?: string, strength = 1): Promise<Float32Array> => {
    const { output } = await part.run(feeds(), id === undefined ? undefined : { id, strength })
    return Float32Array.from(output!.data as Float32Array)
  }

  test.each([
    ["peft", 1, "peft"],
    ["peft", 0.5, "half"],
    ["kohya", 1, "kohya"],
  ])("%s at %f gives what diffusers makes of it", async (id, strength, wanted) => {
    const { data } = expected.floats(wanted)
    const found = await ran(id, strength)
    expect(largestGap(found.subarray(0, data.length), data)).toBeLessThan(2e-4)
  })

  test("none, one, another and none again are each the same bytes as ever", async () => {
    const bare = await openAdapted(partsOf([]), { denoiser: graph })
    const { output } = await bare.parts.denoiser.run(feeds())
    const none = await ran()
    expect(none).toEqual(output!.data)
    const [peft, kohya] = [await ran("peft"), await ran("kohya")]
    expect(peft).not.toEqual(none)
    for (const [id, wanted] of [
      ["kohya", kohya],
      [undefined, none],
      ["peft", peft],
    ] as const)
      expect(await ran(id)).toEqual(wanted)
    expect(await ran("peft", 0)).toEqual(none)
  })
})

describe("what doesn't fit is refused when the model opens", () => {
  const sd3 = families[0]!
  const opened = (path: string, bytes?: number) =>
    openAdapted(partsOf([{ id: "style", path }], bytes), { denoiser: sd3.graph })

  test("layers that the model doesn't have", async () => {
    await expect(opened(loraFile("flux", "peft"))).rejects.toThrow(
      /peft\.safetensors: it adapts the layer '[\w.]+', and the model's denoiser has no linear layer of this name/,
    )
  })

  test("more memory than there may be", async () => {
    await expect(opened(loraFile("sd3", "peft"), 1000)).rejects.toThrow(
      "with it the adapters of the model take 1 MB, the most is 0. Raise adapterMemoryMb",
    )
  })
})
