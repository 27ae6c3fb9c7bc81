import type { Metadata } from "../../weights/gguf-metadata.ts"
import type { Condition, ImageModel, ImageModelInfo, Tensor } from "../model.ts"

/** What a model was asked, in order. */
export interface Drawn {
  readonly calls: string[]
  readonly denoised: {
    readonly timestep: number
    readonly condition: Condition
    readonly guidance: number | undefined
    readonly adapter: string | undefined
  }[]
  isClosed: boolean
}

export const flowScheduler: Metadata = new Map([["_class_name", "FlowMatchEulerDiscreteScheduler"]])

const scalar = (value: number): Tensor => ({ data: Float32Array.of(value), dims: [1] })

/**
 * A model whose pictures are arithmetic: the prompt's length, the LoRA and the guidance pull the
 * latents, an eighth of the picture's size in grey, towards a shade. It decodes `scale` times larger.
 */
export const drawingModel = (
  info: Partial<ImageModelInfo> = {},
  { scale = 8, pauses = 0 } = {},
): { readonly model: ImageModel; readonly drawn: Drawn } => {
  const drawn: Drawn = { calls: [], denoised: [], isClosed: false }
  const model: ImageModel = {
    info: {
      family: "DrawingPipeline",
      scheduler: flowScheduler,
      multiple: 16,
      guidance: "twice",
      sources: "start",
      maxSources: 1,
      ...info,
    },
    latentShape: (width, height) => [1, 1, height / 8, width / 8],
    tokensIn: (dims) => dims.reduce((product, size) => product * size, 1),
    encodePrompt: async (prompt, adapter) => {
      const suffix = adapter ? `, ${adapter.id} ${adapter.strength}` : ""
      drawn.calls.push(`prompt ${prompt}${suffix}`)
      return { shade: scalar(prompt.length / 50) }
    },
    encodeSources: async ([first], width, height, pause) => {
      drawn.calls.push("sources")
      for (let i = 0; i < pauses; i++) await pause?.()
      const data = new Float32Array((width / 8) * (height / 8)).fill(first!.data[0]! / 255)
      return { start: { data, dims: [1, 1, height / 8, width / 8] }, condition: {} }
    },
    denoise: async ({ data, dims }, timestep, condition, guidance, adapter) => {
      drawn.calls.push("denoise")
      drawn.denoised.push({ timestep, condition, guidance, adapter: adapter?.id })
      const shade = condition.shade!.data[0]! + (adapter ? adapter.strength / 10 : 0)
      // the velocity on the straight path to the shade
      const sigma = timestep / 1_000
      return { data: data.map((value) => (value - shade) / sigma), dims }
    },
    decode: async ({ data, dims }, pause) => {
      drawn.calls.push("decode")
      for (let i = 0; i < pauses; i++) await pause?.()
      const [, , rows, columns] = dims as [number, number, number, number]
      const [width, height] = [columns * scale, rows * scale]
      const pixels = new Uint8Array(width * height * 3)
      for (let i = 0; i < width * height; i++) {
        const row = Math.floor(i / width / scale)
        const shade = data[row * columns + Math.floor((i % width) / scale)]!
        pixels.fill(Math.max(0, Math.min(255, Math.round(shade * 255))), 3 * i, 3 * i + 3)
      }
      return { data: pixels, width, height }
    },
    close: async () => {
      drawn.isClosed = true
    },
  }
  return { model, drawn }
}
