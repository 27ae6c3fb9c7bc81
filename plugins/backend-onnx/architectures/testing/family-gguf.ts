import { readFileSync } from "node:fs"
import { fixtureFolder } from "../../testing/fixtures.ts"
import { decodeAs, encodeAs, ggmlTypeNamed } from "../../testing/ggml-encode.ts"
import {
  architectureMetadata,
  byteLevelMetadata,
  gemmaMetadata,
  ggufTensors,
  longRotaryFactors,
  phiMetadata,
  rotaryFactors,
  type SentencePieceFixture,
  sentencePieceMetadata,
} from "../../testing/gguf-of-folder.ts"
import type { GgufContent } from "../../testing/gguf-writer.ts"
import { folderConfig } from "../folder-config.ts"

/** What every GGUF file of a chat model has. */
export const template = {
  "tokenizer.chat_template": "{{ messages[0].content }}",
  "tokenizer.ggml.eos_token_id": 2,
}
const pieces = JSON.parse(
  readFileSync(fixtureFolder("sentencepiece.json"), "utf8"),
) as SentencePieceFixture

/** Base of the rotation, by the family's fixture. */
export const ropeBase = {
  llama: 100_000,
  "llama3-sharded": 500,
  mistral: 10_000,
  qwen2: 1_000_000,
  qwen3: 1_000_000,
  gemma3: 1_000_000,
  smollm3: 5_000_000,
  phi3: 10_000,
  "phi4-mini": 10_000,
  "qwen3-moe": 1_000_000,
}
export type FamilyName = keyof typeof ropeBase

const linearScaling = {
  "gemma3.rope.scaling.type": "linear",
  "gemma3.rope.scaling.factor": { f32: 8 },
}

const tokenizerOf = (name: FamilyName) => {
  if (name === "mistral") return sentencePieceMetadata(pieces)
  if (name === "gemma3") return gemmaMetadata(fixtureFolder(name))
  if (name === "phi3") return phiMetadata(fixtureFolder(name))
  return byteLevelMetadata(
    fixtureFolder(name),
    {
      llama: "smollm",
      "llama3-sharded": "llama-bpe",
      qwen2: "qwen2",
      qwen3: "qwen2",
      smollm3: "smaug-bpe",
      "phi4-mini": "gpt-4o",
      "qwen3-moe": "qwen2",
    }[name],
  )
}

/**
 * The content of a GGUF file of a fixture, with matrices of this type. With `twin` they are encoded, decoded
 * again and stored as floats.
 */
export const familyGguf = (
  name: FamilyName,
  types: string | ((tensor: string) => string),
  twin = false,
  more: GgufContent["metadata"] = {},
): GgufContent => {
  const config = folderConfig(fixtureFolder(name))
  const encode = (values: Float32Array, tensor: string) => {
    const type = typeof types === "string" ? types : types(tensor)
    const bytes = encodeAs(type, values)
    return twin
      ? { type: 0, bytes: new Uint8Array(decodeAs(type, bytes, values.length).buffer) }
      : { type: ggmlTypeNamed(type).id, bytes }
  }
  const scaled =
    name === "llama3-sharded"
      ? [rotaryFactors(config, ropeBase[name])]
      : config.longAfter
        ? longRotaryFactors(config, ropeBase[name])
        : []
  return {
    metadata: {
      ...architectureMetadata(config, ropeBase[name]),
      ...(name === "gemma3" ? linearScaling : {}),
      ...tokenizerOf(name),
      ...template,
      ...more,
    },
    tensors: [...ggufTensors(fixtureFolder(name), config, encode), ...scaled],
  }
}
