import { execFile } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { fixtureFolder } from "../testing/fixtures.ts"
import { byteLevelMetadata } from "../testing/gguf-of-folder.ts"
import { writeGgufHeader } from "../testing/gguf-writer.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-memory-"))
const path = join(root, "large.gguf")
afterAll(() => rmSync(root, { recursive: true, force: true }))

const [width, feedForward, layers, vocabulary, halfType] = [1024, 4096, 6, 16_384, 1]

const matrices = (): readonly (readonly [string, number, number])[] => {
  const layer = (index: number) => {
    const at = (name: string) => `blk.${index}.${name}.weight`
    const square = ["attn_q", "attn_k", "attn_v", "attn_output"].map(
      (name) => [at(name), width, width] as const,
    )
    return [
      ...square,
      [at("ffn_gate"), width, feedForward] as const,
      [at("ffn_up"), width, feedForward] as const,
      [at("ffn_down"), feedForward, width] as const,
    ]
  }
  const tables = [
    ["token_embd.weight", width, vocabulary] as const,
    ["output.weight", width, vocabulary] as const,
  ]
  return [...tables, ...Array.from({ length: layers }, (_, index) => layer(index)).flat()]
}
const norms = [
  "output_norm.weight",
  ...Array.from({ length: layers }, (_, index) => [
    `blk.${index}.attn_norm.weight`,
    `blk.${index}.ffn_norm.weight`,
  ]).flat(),
]

beforeAll(() => {
  const metadata = {
    "general.architecture": "llama",
    "llama.block_count": layers,
    "llama.context_length": 8192,
    "llama.embedding_length": width,
    "llama.feed_forward_length": feedForward,
    "llama.attention.head_count": 16,
    "llama.attention.layer_norm_rms_epsilon": { f32: 1e-5 },
    ...byteLevelMetadata(fixtureFolder("llama"), "smollm"),
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.chat_template": "{{ messages[0].content }}",
  }
  const tensors = [
    ...norms.map((name) => ({ name, dimensions: [width], type: halfType, length: 2 * width })),
    ...matrices().map(([name, columns, rows]) => ({
      name,
      dimensions: [columns, rows],
      type: halfType,
      length: 2 * columns * rows,
    })),
  ]
  // half-precision values of about 0.02
  const piece = Buffer.from(
    Uint16Array.from({ length: 512 * 1024 }, (_, i) => 0x2400 | ((i * 40_503) & 0x83ff)).buffer,
  )
  const file = openSync(path, "wx")
  writeSync(file, writeGgufHeader(metadata, tensors))
  for (
    let left = tensors.reduce((sum, { length }) => sum + length, 0);
    left > 0;
    left -= piece.length
  )
    writeSync(file, piece, 0, Math.min(left, piece.length))
  closeSync(file)
}, 60_000)

test.each(["int8", "int8-channel", "int4", "fp16", "fp32"])(
  "a model of 260 MB is built into %s with much less memory than it has bytes",
  async (precision) => {
    expect(statSync(path).size).toBeGreaterThan(250 * 2 ** 20)
    const script = fileURLToPath(new URL("../testing/build-in-process.ts", import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [
      "--import",
      "tsx",
      script,
      path,
      join(root, precision),
      precision,
    ])
    const { beforeMb, peakMb, fileMb } = JSON.parse(stdout) as {
      readonly beforeMb: number
      readonly peakMb: number
      readonly fileMb: number
    }
    console.log(
      `${precision}: ${Math.round(peakMb - beforeMb)} MB above ${Math.round(beforeMb)} MB, file ${Math.round(fileMb)} MB`,
    )
    expect(peakMb - beforeMb).toBeLessThan(100)
  },
  180_000,
)
