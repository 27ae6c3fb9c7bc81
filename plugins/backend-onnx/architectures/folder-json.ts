import { type Metadata, textIn, textOr } from "../weights/gguf-metadata.ts"
import { Damaged } from "../weights/model-file-error.ts"
import type { Architecture } from "./decoder-config.ts"

/** Defaults of keys that config.json leaves out, from the configuration classes of transformers. */
export const defaults: Readonly<
  Record<
    Architecture,
    {
      readonly heads?: number
      readonly kvHeads?: number
      readonly headSize?: number
      readonly contextTokens: number
      readonly window?: number
      readonly vocabulary?: number
      readonly ropeBase?: number
      readonly normEpsilon?: number
      readonly tiedHead?: true
    }
  >
> = {
  llama: { contextTokens: 2048 },
  mistral: { kvHeads: 8, contextTokens: 131_072, window: 4096 },
  qwen2: { kvHeads: 32, contextTokens: 32_768, window: 4096 },
  qwen3: { kvHeads: 32, headSize: 128, contextTokens: 32_768, window: 4096 },
  gemma3: {
    heads: 8,
    kvHeads: 4,
    headSize: 256,
    contextTokens: 131_072,
    window: 4096,
    vocabulary: 262_208,
    ropeBase: 1_000_000,
    tiedHead: true,
  },
  qwen3moe: { kvHeads: 4, contextTokens: 32_768, window: 4096 },
  phi3: { contextTokens: 4096, normEpsilon: 1e-5 },
  smollm3: { kvHeads: 4, contextTokens: 32_768, ropeBase: 2_000_000, tiedHead: true },
}

export const objectAt = (json: Metadata, key: string): Metadata => {
  const value: unknown = json.get(key) ?? {}
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Damaged(`'${key}' is not an object`)
  return new Map(Object.entries(value))
}

/** Reads true or false; throws `Damaged`. */
export const isOn = (json: Metadata, key: string, byDefault: boolean): boolean => {
  const value = json.get(key) ?? byDefault
  if (typeof value !== "boolean") throw new Damaged(`'${key}' is not true or false`)
  return value
}

const maxNameCharacters = 100

/**
 * The name of a folder's model, for ids and headers: the last part of `_name_or_path`, or its
 * `model_type`, in letters, digits, dots and dashes.
 */
export const modelNameIn = (json: Metadata): string => {
  const path = textOr(json, "_name_or_path", "")
  const name = path.split("/").at(-1) || textIn(json, "model_type")
  return name.replace(/[^\w.-]+/g, "-").slice(0, maxNameCharacters)
}
