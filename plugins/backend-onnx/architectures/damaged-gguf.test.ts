import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { type GgufContent, u32, u64, writeGguf } from "../testing/gguf-writer.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"
import { refusedFiles } from "./testing/refused-files.ts"

const { refusal, root, stored } = refusedFiles()

const content = tinyLlama()
const metadata = (change: GgufContent["metadata"]): Uint8Array =>
  writeGguf({ ...content, metadata: { ...content.metadata, ...change } })
const without = (key: string): Uint8Array =>
  writeGguf({
    ...content,
    metadata: Object.fromEntries(Object.entries(content.metadata).filter(([name]) => name !== key)),
  })
const tensor = (name: string, change: Partial<GgufContent["tensors"][number]>): Uint8Array =>
  writeGguf({
    ...content,
    tensors: content.tensors.map((item) => (item.name === name ? { ...item, ...change } : item)),
  })
const floats = (count: number, at: number, value: number) =>
  new Uint8Array(Float32Array.from({ length: count }, (_, i) => (i === at ? value : 0.1)).buffer)
const ones = {
  dimensions: [8],
  type: 0,
  bytes: new Uint8Array(new Float32Array(8).fill(1).buffer),
}
const header = (tensors: bigint, entries: bigint) =>
  Buffer.concat([Buffer.from("GGUF"), u32(3), u64(tensors), u64(entries), Buffer.alloc(64)])

describe("a GGUF file is refused with the reason", () => {
  test.each<readonly [string, Uint8Array, RegExp]>([
    [
      "cut in the weights",
      writeGguf(content).subarray(0, 60_000),
      /it is cut: the tensor .* Pull it again/,
    ],
    [
      "cut in the header",
      writeGguf(content).subarray(0, 3_000),
      /it is cut: the header needs \d+ bytes/,
    ],
    ["empty", new Uint8Array(), /it is cut/],
    ["of another kind", Buffer.from("PK\x03\x04 not a model at all"), /not a GGUF file/],
    ["with an absurd number of tensors", header(2n ** 62n, 1n), /claims \d+ tensors/],
    [
      "with an absurd number of entries",
      header(1n, 2n ** 40n),
      /claims 1 tensors and \d+ metadata entries/,
    ],
    [
      "of an unknown architecture",
      metadata({ "general.architecture": "mamba" }),
      /architecture is 'mamba'; this backend runs llama, qwen2, qwen3, gemma3, smollm3, phi3, qwen3moe\. Name a model/,
    ],
    [
      "that is a mixture of experts",
      metadata({ "llama.expert_count": 8 }),
      /mixture of 8 experts, which this backend runs of Qwen3 only/,
    ],
    [
      "that rotates a part of its dimensions",
      metadata({ "llama.rope.dimension_count": 4 }),
      /'llama\.rope\.dimension_count' is 4: it rotates a part of its 16 dimensions, which/,
    ],
    [
      "that is a part with a name of its own",
      metadata({ "split.count": 3 }),
      /it is part 1 of 3, but its name does not end in -00001-of-00003\.gguf\. Give the parts/,
    ],
    [
      "of too many parts",
      metadata({ "split.count": 1001 }),
      /it is in 1001 parts, the most is 1000\. Name one file: join them/,
    ],
    [
      "that is a part beyond the last",
      metadata({ "split.count": 3, "split.no": 3 }),
      /its 'split\.no' is 3, with 3 parts\. Pull it again/,
    ],
    [
      "with a tensor of an unknown type",
      tensor("blk.0.ffn_up.weight", { type: 16 }),
      /'blk.0.ffn_up.weight' has the type IQ2_XXS, which this backend can't read/,
    ],
    [
      "without a tensor",
      writeGguf({
        ...content,
        tensors: content.tensors.filter(({ name }) => name !== "blk.1.attn_norm.weight"),
      }),
      /'blk.1.attn_norm.weight' is missing/,
    ],
    [
      "with a tensor too many",
      writeGguf({
        ...content,
        tensors: [
          ...content.tensors,
          { ...content.tensors[1]!, name: "blk.0.ffn_gate_inp.weight" },
        ],
      }),
      /'blk.0.ffn_gate_inp.weight', which a llama of 2 layers has no place for/,
    ],
    [
      "with fewer layers than tensors",
      metadata({ "llama.block_count": 1 }),
      /has the tensor 'blk.1/,
    ],
    [
      "with an impossible number of heads",
      metadata({ "llama.attention.head_count": 5 }),
      /5 heads/,
    ],
    [
      "with absurd sizes",
      metadata({ "llama.embedding_length": 65_536, "llama.context_length": 2 ** 31 - 1 }),
      /asks for|don't fit/,
    ],
    [
      "with an epsilon that no norm can have",
      metadata({ "llama.attention.layer_norm_rms_epsilon": { f32: -1 } }),
      /'llama\.attention\.layer_norm_rms_epsilon' is -1, which is less than 0/,
    ],
    [
      "with one of the two factors of long sequences",
      writeGguf({
        ...content,
        tensors: [...content.tensors, { ...ones, name: "rope_factors_short.weight" }],
      }),
      /the tensor 'rope_factors_long.weight' is missing/,
    ],
    ["without a tokenizer", without("tokenizer.ggml.model"), /it has no tokenizer/],
    ["without tokens", without("tokenizer.ggml.tokens"), /no 'tokenizer.ggml.tokens'/],
    [
      "with a tokenizer of another kind",
      metadata({ "tokenizer.ggml.model": "t5" }),
      /its tokenizer is 't5'/,
    ],
    [
      "without a chat template",
      without("tokenizer.chat_template"),
      /no chat template .*Name the model that was trained for chat/,
    ],
    [
      "with a rotary scaling of another kind",
      metadata({ "llama.rope.scaling.type": "longrope" }),
      /'llama\.rope\.scaling\.type' is 'longrope'; this backend knows linear, yarn/,
    ],
    [
      "with NaN in a matrix",
      tensor("blk.1.attn_output.weight", { bytes: floats(64 * 64, 4000, Number.NaN) }),
      /'blk.1.attn_output.weight': it holds a value that is not a finite number/,
    ],
    [
      "with infinity in a norm",
      tensor("blk.0.ffn_norm.weight", { bytes: floats(64, 3, Number.POSITIVE_INFINITY) }),
      /'blk.0.ffn_norm.weight': it holds a value that is not a finite number/,
    ],
  ])("%s", async (_, bytes, reason) => {
    expect(await refusal(stored(bytes))).toMatch(reason)
  })

  test("missing", async () => {
    expect(await refusal(join(root, "nothing.gguf"))).toMatch(/can't be opened .*no such file/)
  })
})
