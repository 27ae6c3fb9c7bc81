import "reflect-metadata/lite"
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
} from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { container as root } from "tsyringe"
import { describe, expect, it } from "vitest"
import { resolveAll, Tokens } from "../../core/tokens.ts"
import { plugin } from "./plugin.ts"

const offered = (settings: object) => {
  const container = root.createChildContainer()
  plugin.create(Schema.decodeUnknownSync(plugin.settings)(settings) as never).register?.(container)
  return resolveAll(container, Tokens.models)
}

it("brings svc-iris with its text encoder and LoRAs, or the name and price of the settings", () => {
  expect(offered({})).toMatchObject([
    {
      id: "svc-iris",
      task: "image",
      capabilities: ["image_generation", "image_editing"],
      price: { image: 750 },
      adapters: [{ id: "text_encoder" }, { id: "dark" }, { id: "anime" }],
    },
  ])
  expect(offered({ id: "clip-art", price: { image: 1 } })).toMatchObject([
    { id: "clip-art", task: "image", price: { image: 1 } },
  ])
})

const weights = join(import.meta.dirname, "weights")
const isThere = existsSync(weights)
if (!isThere) console.warn("skipped: the package has no weights yet")

interface Tensor {
  readonly dtype: string
  readonly shape: readonly number[]
}

/** The header of a safetensors file. */
const tensorsOf = (...path: readonly string[]): Readonly<Record<string, Tensor>> => {
  const file = openSync(join(weights, ...path), "r")
  const length = Buffer.alloc(8)
  readSync(file, length)
  const header = Buffer.alloc(Number(length.readBigUInt64LE()))
  readSync(file, header)
  closeSync(file)
  const { __metadata__, ...tensors } = JSON.parse(header.toString())
  return tensors
}

describe.skipIf(!isThere)("its weights", () => {
  it("take at most 30 MB all together", () => {
    const files = readdirSync(weights, { recursive: true, withFileTypes: true })
    const bytes = files
      .filter((file) => file.isFile())
      .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
    expect(bytes).toBeLessThan(30e6)
  })

  it("are matrices in 8 bits with a scale for each row, and the rest in 16", () => {
    const tensors = tensorsOf("transformer", "diffusion_pytorch_model.safetensors")
    const levels = Object.entries(tensors).filter(([, { dtype }]) => dtype === "I8")
    const index = JSON.parse(readFileSync(join(weights, "transformer", "config.json"), "utf8"))
    expect(levels.length).toBeGreaterThan(7 * index.num_layers)
    for (const [name, { shape }] of levels)
      expect(tensors[`${name}_scale`]).toMatchObject({ dtype: "F32", shape: [shape[0], 1] })
    expect(tensors["proj_out.weight"]!.dtype).toBe("F16")
  })

  it.each(["dark", "anime"])("have the LoRA %s for layers of the model", (name) => {
    const layers = tensorsOf("transformer", "diffusion_pytorch_model.safetensors")
    for (const [lora, { dtype, shape }] of Object.entries(
      tensorsOf("loras", `${name}.safetensors`),
    )) {
      const [, layer, side] = /^transformer\.(.+)\.lora_([AB])\.weight$/.exec(lora)!
      const [rows, columns] = layers[`${layer}.weight`]!.shape
      expect(dtype).toBe("F16")
      expect(side === "A" ? shape[1] : shape[0]).toBe(side === "A" ? columns : rows)
    }
  })
})
