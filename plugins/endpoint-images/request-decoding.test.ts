import { describe, expect, it } from "vitest"
import { plainImage } from "../../testing/images.ts"
import { openEndpoints } from "./testing/open-endpoints.ts"

const opened = openEndpoints()
const { generate, edit, lastRequest } = opened

const bytesOf = (width: number, height: number) => plainImage(width, height, "red").png().toBuffer()
const image = (await bytesOf(96, 64)).toString("base64")

type Ask = typeof generate
const statusOf = async (ask: Ask, more: object) => {
  const { status, json } = await ask(more)
  const { code, param } = json as { readonly code?: string; readonly param?: string }
  return status === 200 ? ["ok"] : [code, param]
}
const onEdits: Ask = (more, input) => edit({ image, ...more }, input)

const invalid = "invalid_request_error"
const both: readonly (readonly [object, readonly (string | undefined)[]])[] = [
  [{ model: undefined }, [invalid, "model"]],
  [{ model: "svc-lyt" }, ["model_not_found", "model"]],
  [{ model: "gpt-image-1" }, ["model_not_found", "model"]],
  [{ prompt: undefined }, [invalid, "prompt"]],
  [{ prompt: null }, [invalid, "prompt"]],
  [{ prompt: "" }, [invalid, "prompt"]],
  [{ prompt: " \n" }, [invalid, "prompt"]],
  [{ prompt: 5 }, [invalid, "prompt"]],
  [{ prompt: "🍎".repeat(2_000) }, ["ok"]],
  [{ prompt: "🍎".repeat(2_001) }, ["context_length_exceeded", "prompt"]],
  [{ n: 1 }, ["ok"]],
  [{ n: null }, ["ok"]],
  [{ n: 0 }, [invalid, "n"]],
  [{ n: 2 }, [invalid, "n"]],
  [{ n: "1" }, [invalid, "n"]],
  [{ response_format: "b64_json" }, ["ok"]],
  [{ response_format: "url" }, [invalid, "response_format"]],
  [{ output_format: "png" }, ["ok"]],
  [{ output_format: "jpeg" }, ["unsupported_parameter", "output_format"]],
  [{ mask: image }, ["unsupported_parameter", "mask"]],
  [{ background: "transparent" }, ["unsupported_parameter", "background"]],
  [{ negative_prompt: "blurred" }, ["unsupported_parameter", "negative_prompt"]],
  [{ negative_prompt: "" }, ["ok"]],
  [{ adapter: "dark" }, ["unsupported_parameter", "adapter"]],
  [{ adapter: { id: "dark", strength: 1 } }, ["unsupported_parameter", "adapter"]],
  [{ adapters: ["dark"] }, ["unsupported_parameter", "adapters"]],
  [{ adapter: null, adapters: [] }, ["ok"]],
  [{ output_compression: 100, background: "opaque", quality: "standard" }, ["ok"]],
  [{ toString: 1, who_knows: 2 }, ["ok"]],
  [{ num_steps: 0 }, [invalid, "num_steps"]],
  [{ num_steps: 1 }, ["ok"]],
  [{ num_steps: 50 }, ["ok"]],
  [{ num_steps: 51 }, [invalid, "num_steps"]],
  [{ num_steps: 1.5 }, [invalid, "num_steps"]],
  [{ num_inference_steps: 51 }, [invalid, "num_inference_steps"]],
  [{ num_steps: 5, num_inference_steps: 5 }, ["ok"]],
  [{ num_steps: 5, num_inference_steps: 6 }, [invalid, "num_inference_steps"]],
  [{ seed: -2 }, [invalid, "seed"]],
  [{ seed: 2 ** 31 - 1 }, ["ok"]],
  [{ seed: 2 ** 31 }, [invalid, "seed"]],
  [{ seed: "7" }, [invalid, "seed"]],
  [{ guidance_scale: -0.1 }, [invalid, "guidance_scale"]],
  [{ guidance_scale: 0 }, ["ok"]],
  [{ guidance_scale: 20 }, ["ok"]],
  [{ guidance_scale: 20.1 }, [invalid, "guidance_scale"]],
  [{ lora: "none" }, ["ok"]],
  [{ lora: "anime" }, ["ok"]],
  [{ lora: "Dark" }, [invalid, "lora"]],
  [{ lora: "" }, [invalid, "lora"]],
  [{ lora_strength: 1.5 }, ["ok"]],
  [{ lora_strength: 1.6 }, [invalid, "lora_strength"]],
  [{ lora_strength: -1 }, [invalid, "lora_strength"]],
  [{ partial_images: 4, stream: true }, [invalid, "partial_images"]],
  [{ partial_images: 3 }, ["ok"]],
  [{ stream: "true" }, [invalid, "stream"]],
  [{ size: "auto" }, ["ok"]],
  [{ size: "64x64" }, ["ok"]],
  [{ size: "63x64" }, [invalid, "size"]],
  [{ size: "0x0" }, [invalid, "size"]],
  [{ size: "512" }, [invalid, "size"]],
  [{ size: "512X512" }, [invalid, "size"]],
  [{ size: " 512x512" }, [invalid, "size"]],
  [{ size: "512x512x512" }, [invalid, "size"]],
  [{ size: "-512x512" }, [invalid, "size"]],
  [{ size: "1e2x64" }, [invalid, "size"]],
  [{ size: 512 }, [invalid, "size"]],
]

describe.each([
  ["generations", generate],
  ["edits", onEdits],
] as const)("a request to %s", (_, ask) => {
  it.each(both)("%j", async (more, wanted) => {
    expect(await statusOf(ask, more)).toEqual(wanted)
  })

  it("that wants more pictures, or a URL of one, hears what it may be", async () => {
    const messageOf = async (more: object) => (await ask(more)).json
    expect(await messageOf({ n: 2 })).toMatchObject({ message: "n: must be 1" })
    expect(await messageOf({ response_format: "url" })).toMatchObject({
      message: "response_format: must be b64_json: there are no URLs",
    })
  })

  it("that names an unknown LoRA is refused with the choices", async () => {
    const { json } = await ask({ lora: "oil" })
    expect(json).toMatchObject({ message: "lora: must be one of 'none', 'dark', 'anime'" })
  })

  it("that names it as a chat does hears what to use", async () => {
    const { json } = await ask({ adapter: "dark" })
    expect(json).toMatchObject({ message: "adapter: is not supported; use lora instead." })
  })

  it("has defaults, and the steps under either name", async () => {
    await ask({ seed: 1, lora: "dark" })
    expect(lastRequest()).toMatchObject({
      steps: 4,
      guidanceScale: 1,
      adapter: { id: "dark", strength: 0.6 },
    })
    await ask({ num_inference_steps: 9, lora: "none", lora_strength: 1 })
    expect(lastRequest()).toMatchObject({ steps: 9 })
    expect(lastRequest()).not.toHaveProperty("adapter")
    await ask({ partial_images: 3 })
    expect(lastRequest()).not.toHaveProperty("previews")
  })
})

describe("a size", () => {
  const sizeOf = async (ask: Ask, size: string | undefined) => {
    const { status } = await ask({ ...(size !== undefined && { size }) })
    if (status !== 200) return status
    const { width, height } = lastRequest()!
    return `${width}x${height}`
  }
  it.each([
    ["960x960", "960x960"],
    ["961x960", 400],
    ["960x975", 400],
    ["959x79", "944x64"],
    ["784x100", "784x96"],
    [undefined, "768x768"],
  ])("of a generation, %s, becomes %s", async (size, wanted) => {
    expect(await sizeOf(generate, size)).toBe(wanted)
  })

  it.each([
    ["704x704", "704x704"],
    ["705x704", 400],
    ["720x720", 400],
    ["703x65", "688x64"],
    [undefined, "96x64"],
  ])("of an edit, %s, becomes %s", async (size, wanted) => {
    expect(await sizeOf(onEdits, size)).toBe(wanted)
  })

  it.each([
    [1_408, 1_408, "704x704"],
    [705, 100, "704x96"],
    [300, 1_000, "208x704"],
    [100, 50, "96x64"],
    [1, 1, "64x64"],
    [5_000, 10, "704x64"],
  ])("of an edit of %i x %i is %s by default", async (width, height, wanted) => {
    const first = (await bytesOf(width, height)).toString("base64")
    await edit({ images: [first, image] })
    const request = lastRequest()
    expect(`${request?.width}x${request?.height}`).toBe(wanted)
  })
})

describe("fields of one endpoint", () => {
  it("are refused at the other, where they would be dropped silently", async () => {
    for (const field of ["image", "images", "strength"])
      expect(await statusOf(generate, { [field]: field === "strength" ? 0.5 : image })).toEqual([
        "unsupported_parameter",
        field,
      ])
    expect(await statusOf(onEdits, { input_fidelity: "high" })).toEqual([
      "unsupported_parameter",
      "input_fidelity",
    ])
  })

  it("strength is 0 to 1, 0.75 by default", async () => {
    for (const [strength, wanted] of [
      [0, ["ok"]],
      [1, ["ok"]],
      [1.01, [invalid, "strength"]],
      [-0.01, [invalid, "strength"]],
    ] as const)
      expect(await statusOf(onEdits, { strength })).toEqual(wanted)
    await onEdits({})
    expect(lastRequest()).toMatchObject({ strength: 0.75 })
    await generate({})
    expect(lastRequest()).not.toHaveProperty("strength")
  })
})

it("a model that makes pictures from text alone refuses edits", async () => {
  const { edit } = openEndpoints({ edits: false })
  expect(await statusOf((more) => edit({ image, ...more }), {})).toEqual([
    "unsupported_parameter",
    "model",
  ])
})

describe("a model with defaults of its own", () => {
  const own = openEndpoints({ defaults: { steps: 25, guidanceScale: 7.5 } })
  it.each([
    [{}, 25, 7.5],
    [{ num_steps: null, guidance_scale: null }, 25, 7.5],
    [{ num_inference_steps: 4 }, 4, 7.5],
    [{ num_steps: 4, guidance_scale: 1 }, 4, 1],
  ])("takes them for what %j leaves out", async (more, steps, guidanceScale) => {
    expect(await own.generate(more)).toMatchObject({ status: 200 })
    expect(own.lastRequest()).toMatchObject({ steps, guidanceScale })
  })
})
