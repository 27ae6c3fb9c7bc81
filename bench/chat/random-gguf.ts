import { closeSync, openSync, writeSync } from "node:fs"
import { seededRandom } from "../../plugins/backend-onnx/sampling/random.ts"
import { encodeAs, ggmlTypeNamed } from "../../plugins/backend-onnx/testing/ggml-encode.ts"
import { type GgufValue, writeGgufHeader } from "../../plugins/backend-onnx/testing/gguf-writer.ts"
import type { GgufFile } from "../../plugins/backend-onnx/weights/gguf-file.ts"

interface Shape {
  readonly width: number
  readonly layers: number
  readonly heads: number
  readonly kvHeads: number
  readonly feedForward: number
}

/** SmolLM2-135M, SmolLM2-360M, Llama 3.2 1B; and a small one, for tests. */
export const shapes: Readonly<Record<string, Shape>> = {
  "3M": { width: 256, layers: 4, heads: 4, kvHeads: 2, feedForward: 768 },
  "135M": { width: 576, layers: 30, heads: 9, kvHeads: 3, feedForward: 1536 },
  "360M": { width: 960, layers: 32, heads: 15, kvHeads: 5, feedForward: 2560 },
  "1B": { width: 2048, layers: 16, heads: 32, kvHeads: 8, feedForward: 8192 },
}

const contextTokens = 8192

const tokenizerKeys: Readonly<Record<string, true>> = {
  "tokenizer.ggml.model": true,
  "tokenizer.ggml.pre": true,
  "tokenizer.ggml.tokens": true,
  "tokenizer.ggml.token_type": true,
  "tokenizer.ggml.merges": true,
  "tokenizer.ggml.bos_token_id": true,
  "tokenizer.ggml.eos_token_id": true,
  "tokenizer.chat_template": true,
}

const metadataOf = (shape: Shape, tokenizer: GgufFile): Readonly<Record<string, GgufValue>> => ({
  "general.architecture": "llama",
  "llama.block_count": shape.layers,
  "llama.context_length": contextTokens,
  "llama.embedding_length": shape.width,
  "llama.feed_forward_length": shape.feedForward,
  "llama.attention.head_count": shape.heads,
  "llama.attention.head_count_kv": shape.kvHeads,
  "llama.attention.layer_norm_rms_epsilon": { f32: 1e-5 },
  "llama.rope.dimension_count": shape.width / shape.heads,
  "llama.rope.freq_base": { f32: 10_000 },
  ...(Object.fromEntries(
    [...tokenizer.header.metadata].filter(([key]) => tokenizerKeys[key]),
  ) as Record<string, GgufValue>),
})

type Dimensions = readonly [columns: number, rows: number]

const matricesOf = (
  { width, heads, kvHeads, layers, feedForward }: Shape,
  vocabulary: number,
): readonly (readonly [string, Dimensions])[] => {
  const kv = (width / heads) * kvHeads
  const parts: readonly (readonly [string, Dimensions])[] = [
    ["attn_q", [width, width]],
    ["attn_k", [width, kv]],
    ["attn_v", [width, kv]],
    ["attn_output", [width, width]],
    ["ffn_gate", [width, feedForward]],
    ["ffn_up", [width, feedForward]],
    ["ffn_down", [feedForward, width]],
  ]
  return [
    ["token_embd.weight", [width, vocabulary]],
    ...Array.from({ length: layers }, (_, layer) =>
      parts.map(([name, of]) => [`blk.${layer}.${name}.weight`, of] as const),
    ).flat(),
  ]
}

const normsOf = ({ layers }: Shape): readonly string[] => [
  "output_norm.weight",
  ...Array.from({ length: layers }, (_, layer) => [
    `blk.${layer}.attn_norm.weight`,
    `blk.${layer}.ffn_norm.weight`,
  ]).flat(),
]

const pieceValues = 2 ** 20

/** Encoded values around zero, which matrices are filled with, over and over. */
const randomPiece = (type: string): Uint8Array => {
  const random = seededRandom(1)
  const normal = () => random() + random() + random() + random() - 2
  return encodeAs(
    type,
    Float32Array.from({ length: pieceValues }, () => normal() * 0.03),
  )
}

const padding = (length: number): number => (32 - (length % 32)) % 32

/**
 * A piece that begins elsewhere for each matrix: ONNX Runtime keeps matrices of the same bytes in
 * memory once, and would read all layers from the caches.
 */
const turned = (piece: Uint8Array, index: number, blockBytes: number): Uint8Array => {
  const from = ((index * 7919) % (piece.length / blockBytes)) * blockBytes
  return Buffer.concat([piece.subarray(from), piece.subarray(0, from)])
}

/**
 * Writes a model of random weights in a real shape, with the tokenizer of another file: for speed,
 * memory and start, which don't depend on what the numbers are.
 */
export const writeRandomGguf = (
  path: string,
  size: string,
  typeOf: (tensor: string) => string,
  tokenizer: GgufFile,
): void => {
  const shape = shapes[size]
  if (!shape) throw new Error(`no shape '${size}': ${Object.keys(shapes).join(", ")}`)
  const vocabulary = (tokenizer.header.metadata.get("tokenizer.ggml.tokens") as string[]).length
  const norms = normsOf(shape).map((name) => ({
    name,
    dimensions: [shape.width],
    type: 0,
    length: shape.width * 4,
    piece: () => new Uint8Array(new Float32Array(shape.width).fill(1).buffer),
  }))
  const pieces = new Map<string, Uint8Array>()
  const matrices = matricesOf(shape, vocabulary).map(([name, dimensions], index) => {
    const typeName = typeOf(name)
    const { id, type } = ggmlTypeNamed(typeName)
    const piece = pieces.get(typeName) ?? randomPiece(typeName)
    pieces.set(typeName, piece)
    const length = ((dimensions[0] * dimensions[1]) / type.blockValues) * type.blockBytes
    const own = () => turned(piece, index, type.blockBytes)
    return { name, dimensions, type: id, length, piece: own }
  })
  const tensors = [...norms, ...matrices]
  const file = openSync(path, "wx")
  writeSync(file, writeGgufHeader(metadataOf(shape, tokenizer), tensors))
  for (const { length, piece: makePiece } of tensors) {
    const piece = makePiece()
    for (let left = length; left > 0; left -= piece.length)
      writeSync(file, piece, 0, Math.min(left, piece.length))
    writeSync(file, new Uint8Array(padding(length)))
  }
  closeSync(file)
}
