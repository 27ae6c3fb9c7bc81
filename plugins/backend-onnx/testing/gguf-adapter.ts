import { join } from "node:path"
import type { Architecture } from "../architectures/decoder-config.ts"
import { openSafetensors } from "../weights/safetensors.ts"
import { ggufName, neighbours, valuesOf } from "./gguf-of-folder.ts"
import { writeGguf } from "./gguf-writer.ts"

interface Options {
  readonly headSize: number
  /** A text is in files that are wrong; undefined: it is left out. */
  readonly alpha: number | string | undefined
  readonly architecture?: Architecture
  /** Renames tensors, for files that are wrong. */
  rename?(name: string): string
}

/** A folder of PEFT as llama.cpp's convert_lora_to_gguf.py would write it. */
export const adapterGguf = (
  folder: string,
  { headSize, alpha, architecture = "llama", rename = (name) => name }: Options,
): Buffer => {
  const source = openSafetensors(join(folder, "adapter_model.safetensors"))
  const tensors = [...source.names()].map((name) => {
    const { rows, columns } = source.tensor(name)
    const [, module, side] = /^base_model\.model\.(.+)\.lora_([AB])\.weight$/.exec(name)!
    const isShuffled = architecture === "llama" && side === "B" && /[qk]_proj$/.test(module!)
    const stored = valuesOf(source, name)
    const values = isShuffled ? neighbours(stored, columns, headSize) : stored
    return {
      name: rename(`${ggufName(`${module}.weight`, architecture)}.lora_${side!.toLowerCase()}`),
      dimensions: [columns, rows],
      type: 0,
      bytes: new Uint8Array(values.buffer),
    }
  })
  source.close()
  return writeGguf({
    metadata: {
      "general.type": "adapter",
      "general.architecture": architecture,
      "adapter.type": "lora",
      ...(alpha !== undefined && {
        "adapter.lora.alpha": typeof alpha === "number" ? { f32: alpha } : alpha,
      }),
    },
    tensors,
  })
}
