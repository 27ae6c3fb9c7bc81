import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
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
import { unetConfig } from "../unet/unet-config.ts"
import { buildUnet } from "../unet/unet-graph.ts"
import { type AdaptedPart, openAdapted } from "./adapted-parts.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-loras-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

type Feeds = Parameters<AdaptedPart["run"]>[0]

const inputOf = (family: string, name: string, part = "transformer") => {
  const { data, dims } = expectedTensors(family).floats(`${part}.${name}`)
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

const graphOf = (family: string, build: PartGraph["build"], name = "transformer"): PartGraph => ({
  name,
  path: diffusionFolder(family, name),
  key: [family],
  build,
})

const flux = fluxConfig(partConfig("flux", "transformer"))
const flux2 = flux2Config(partConfig("flux2", "transformer"))
const sd3 = sd3Config(partConfig("sd3", "transformer"))

const unet = unetConfig(partConfig("sd", "unet"))

const families: readonly Family[] = [
  {
    name: "sd",
    graph: graphOf("sd", (building) => buildUnet(building, unet), "unet"),
    feeds: () => ({
      latents: inputOf("sd", "latents", "unet"),
      context: inputOf("sd", "context", "unet"),
      timestep: floats(Float32Array.of(521), [1]),
    }),
  },
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

const zeroTensors = (shapes: Readonly<Record<string, readonly number[]>>): Buffer => {
  let end = 0
  const header = Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => {
      const from = end
      end += shape.reduce((product, size) => product * size, 4)
      return [name, { dtype: "F32", shape, data_offsets: [from, end] }]
    }),
  )
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(json.length))
  return Buffer.concat([length, json, Buffer.alloc(end)])
}

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

test("a part that was closed and loaded again gives the same bytes", async () => {
  const { name, graph, feeds } = families[0]!
  const adapters = [{ id: "peft", path: loraFile(name, "peft") }]
  const outputOf = async (offload: boolean) => {
    const parts = new Parts({ ...partsOf(adapters).host, offload })
    const { parts: opened } = await openAdapted(parts, { denoiser: graph })
    const other = await parts.open(families[1]!.graph)
    if (offload) await other.inputs()
    const { output } = await opened.denoiser.run(feeds(), { id: "peft", strength: 1 })
    await parts.close()
    return output!.data
  }
  expect(await outputOf(true)).toEqual(await outputOf(false))
})

describe("what doesn't fit is refused when the model opens", () => {
  const opened = (path: string, bytes?: number) =>
    openAdapted(partsOf([{ id: "style", path }], bytes), { denoiser: families[0]!.graph })

  /** A LoRA of these tensors, full of zeros. */
  const written = (name: string, shapes: Readonly<Record<string, readonly number[]>>): string => {
    const path = join(root, `${name}.safetensors`)
    writeFileSync(path, zeroTensors(shapes))
    return path
  }
  const down = (layer: string, ...shape: number[]) => ({ [`${layer}.lora_down.weight`]: shape })
  const up = (layer: string, ...shape: number[]) => ({ [`${layer}.lora_up.weight`]: shape })

  test.each([
    [
      "a convolution",
      { ...down("lora_unet_conv_in", 2, 4, 3, 3), ...up("lora_unet_conv_in", 8, 2, 1, 1) },
      "it adapts the layer 'conv_in', and the model's denoiser has no linear layer of this name",
    ],
    [
      "a text encoder",
      down("lora_te_text_model_encoder_layers_0_mlp_fc1", 2, 16),
      "it adapts 'text_model_encoder_layers_0_mlp_fc1' of the text encoder, which takes no adapters in this model. Name a LoRA without this part",
    ],
    [
      "a layer of another width",
      {
        ...down("lora_unet_mid_block_attentions_0_proj_in", 2, 320),
        ...up("lora_unet_mid_block_attentions_0_proj_in", 320, 2),
      },
      "the tensor 'lora_unet_mid_block_attentions_0_proj_in.lora_down.weight' is 2 x 320, and the model asks for 2 x 16. Name an adapter that was trained on this model",
    ],
    [
      "half a layer",
      down("lora_unet_mid_block_attentions_0_proj_in", 2, 16),
      "its layer 'mid_block_attentions_0_proj_in' has one matrix of a LoRA without the other",
    ],
    [
      "too many ranks",
      {
        ...down("lora_unet_mid_block_attentions_0_proj_in", 300, 16),
        ...up("lora_unet_mid_block_attentions_0_proj_in", 16, 300),
      },
      "has the rank 300, the most is 256",
    ],
    [
      "another method",
      { "lora_unet_mid_block_attentions_0_proj_in.hada_w1_a": [16, 2] },
      "it has the tensor 'lora_unet_mid_block_attentions_0_proj_in.hada_w1_a', which is none of a plain LoRA",
    ],
    [
      "a layer by two names",
      {
        ...down("lora_unet_mid_block_attentions_0_proj_in", 2, 16),
        ...up("lora_unet_mid_block_attentions_0_proj_in", 16, 2),
        ...down("unet.mid_block.attentions.0.proj_in", 2, 16),
        ...up("unet.mid_block.attentions.0.proj_in", 16, 2),
      },
      "it adapts the layer 'mid_block.attentions.0.proj_in' twice",
    ],
    ["nothing", {}, "it holds no tensor of an adapter"],
  ])("%s", async (name, shapes, message) => {
    const path = written(name.replaceAll(" ", "-"), shapes as Record<string, readonly number[]>)
    await expect(opened(path)).rejects.toThrow(message)
  })

  test("a LoRA of another model", async () => {
    await expect(opened(loraFile("flux", "peft"))).rejects.toThrow(
      /peft\.safetensors: it adapts the layer '[\w.]+', and the model's denoiser has no linear layer of this name/,
    )
  })

  test("too large a LoRA, by its header: no value is read before", async () => {
    const path = join(root, "no-values.safetensors")
    const bytes = readFileSync(loraFile("sd", "peft"))
    // no value is finite, so that reading one would be another error
    bytes.fill(0xff, 8 + Number(bytes.readBigUInt64LE(0)))
    writeFileSync(path, bytes)
    await expect(opened(path, 1000)).rejects.toThrow("Raise adapterMemoryMb")
    await expect(opened(path)).rejects.toThrow("a value that is not a finite number")
    const small = { id: "small", path: loraFile("sd", "peft") }
    const both = partsOf([{ id: "style", path }, small], 60_000)
    await expect(openAdapted(both, { denoiser: families[0]!.graph })).rejects.toThrow(
      `${small.path}: with it the adapters`,
    )
  })

  test("more memory than there may be", async () => {
    await expect(opened(loraFile("sd", "peft"), 1000)).rejects.toThrow(
      "with it the adapters of the model take 1 MB, the most is 0. Raise adapterMemoryMb",
    )
  })
})
