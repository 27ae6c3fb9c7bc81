import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import { fixtureFolder } from "../testing/fixtures.ts"
import { type GgufContent, u32, u64, writeGguf } from "../testing/gguf-writer.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import { openModelSource } from "./model-source.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-damaged-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const open = (path: string) =>
  openDecoder({ path, graphs: join(root, "graphs"), precision: "int8", threads: 1 }, () => {})

let files = 0
const stored = (bytes: Uint8Array): string => {
  const path = join(root, `${files++}.gguf`)
  writeFileSync(path, bytes)
  return path
}

/** What opening fails with. It names the file or the folder, and says what can be done. */
const refusal = async (path: string): Promise<string> => {
  const error = await open(path).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  expect(error).toBeInstanceOf(ModelFileError)
  const { message } = error as Error
  expect(message.startsWith(path)).toBe(true)
  return message
}

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
      /architecture is 'mamba'; this backend runs llama, qwen2, qwen3\. Name a model/,
    ],
    ["that is a mixture of experts", metadata({ "llama.expert_count": 8 }), /mixture of 8 experts/],
    ["that is a part", metadata({ "split.count": 3 }), /it is one of 3 parts\. Join them/],
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
      metadata({ "llama.rope.scaling.type": "yarn" }),
      /scaled by 'yarn'; this backend knows linear/,
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

const copied = (name: string, change: (folder: string) => void): string => {
  const folder = join(root, `folder-${files++}`)
  cpSync(fixtureFolder(name), folder, { recursive: true })
  change(folder)
  return folder
}
const config = (change: Readonly<Record<string, unknown>>) => (folder: string) => {
  const json = JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as Record<
    string,
    unknown
  >
  writeFileSync(join(folder, "config.json"), JSON.stringify({ ...json, ...change }))
}
/** Changes the header of model.safetensors, or its bytes after the header. */
const safetensors =
  (
    change: (
      entries: Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>,
      data: Buffer,
    ) => void,
  ) =>
  (folder: string) => {
    const path = join(folder, "model.safetensors")
    const bytes = readFileSync(path)
    const end = 8 + Number(bytes.readBigUInt64LE())
    const entries = JSON.parse(bytes.subarray(8, end).toString("utf8"))
    const data = bytes.subarray(end)
    change(entries, data)
    const head = Buffer.from(JSON.stringify(entries))
    writeFileSync(path, Buffer.concat([u64(head.length), head, data]))
  }
const up = "model.layers.0.mlp.up_proj.weight"

describe("a folder is refused with the reason", () => {
  test.each<readonly [string, string, (folder: string) => void, RegExp]>([
    [
      "without config.json",
      "qwen2",
      (folder) => rmSync(join(folder, "config.json")),
      /config.json: it is missing\. Pull/,
    ],
    [
      "with a cut config.json",
      "qwen2",
      (folder) => truncateSync(join(folder, "config.json"), 100),
      /config.json: it is not JSON/,
    ],
    [
      "of an unknown kind",
      "qwen2",
      config({ model_type: "mamba" }),
      /config.json: its architecture is 'mamba'; this backend runs llama, mistral, qwen2, qwen3/,
    ],
    [
      "that is quantized elsewhere",
      "qwen2",
      config({ quantization_config: { quant_method: "gptq" } }),
      /'quantization_config'\)\. Name the model's plain files/,
    ],
    [
      "with another rotary scaling",
      "qwen2",
      config({ rope_parameters: null, rope_scaling: { rope_type: "yarn", factor: 4 } }),
      /scaled by 'yarn'; this backend knows linear and llama3/,
    ],
    ["with another activation", "qwen2", config({ hidden_act: "gelu" }), /'hidden_act' is 'gelu'/],
    [
      "with layers of another kind",
      "qwen3",
      config({ layer_types: ["full_attention", "linear_attention"] }),
      /layer 1 is of the kind 'linear_attention'/,
    ],
    [
      "of another size",
      "qwen2",
      config({ intermediate_size: 96 }),
      /'model.layers.0.mlp.gate_proj.weight' is 64 x 32, its configuration asks for 96 x 32/,
    ],
    [
      "without a shard",
      "llama3-sharded",
      (folder) => rmSync(join(folder, "model-00002-of-00002.safetensors")),
      /model-00002-of-00002.safetensors: can't be opened/,
    ],
    [
      "with a cut shard",
      "llama3-sharded",
      (folder) => truncateSync(join(folder, "model-00001-of-00002.safetensors"), 30_000),
      /00001-of-00002.safetensors: it is cut/,
    ],
    [
      "with a broken index",
      "llama3-sharded",
      (folder) =>
        writeFileSync(
          join(folder, "model.safetensors.index.json"),
          '{"weight_map":{"a":"../../etc/passwd"}}',
        ),
      /is no file of weights/,
    ],
    [
      "with an absurd header",
      "qwen2",
      (folder) =>
        writeFileSync(
          join(folder, "model.safetensors"),
          Buffer.concat([u64(2n ** 62n), Buffer.alloc(100)]),
        ),
      /claims a header of \d+ bytes/,
    ],
    [
      "with no weights",
      "qwen2",
      (folder) => rmSync(join(folder, "model.safetensors")),
      /neither model.safetensors nor/,
    ],
    [
      "without a bias that its kind has",
      "qwen2",
      safetensors((entries) => delete entries["model.layers.1.self_attn.k_proj.bias"]),
      /'model.layers.1.self_attn.k_proj.bias' is missing/,
    ],
    [
      "without a tensor",
      "qwen2",
      safetensors((entries) => delete entries[up]),
      /up_proj.weight' is missing/,
    ],
    [
      "with a tensor of another type",
      "qwen2",
      safetensors((entries) => Object.assign(entries[up]!, { dtype: "F8_E4M3" })),
      /up_proj.weight' has the type F8_E4M3/,
    ],
    [
      "with a tensor too many",
      "qwen2",
      safetensors((entries) =>
        Object.assign(entries, { "model.layers.0.mlp.experts.weight": entries[up]! }),
      ),
      /'model.layers.0.mlp.experts.weight', which a qwen2/,
    ],
    [
      "with NaN",
      "qwen2",
      safetensors(
        (entries, data) => void data.writeUInt16LE(0x7e00, entries[up]!.data_offsets[0] + 100),
      ),
      /up_proj.weight.*not a finite number/,
    ],
    [
      "with infinity in an embedding",
      "qwen3",
      safetensors(
        (entries, data) =>
          void data.writeUInt16LE(
            0x7f80,
            entries["model.embed_tokens.weight"]!.data_offsets[0] + 640,
          ),
      ),
      /'model.embed_tokens.weight': it holds a value that is not/,
    ],
  ])("%s", async (_, name, change, reason) => {
    expect(await refusal(copied(name, change))).toMatch(reason)
  })

  test("that is neither", async () => {
    expect(
      await refusal(copied("qwen2", (folder) => rmSync(join(folder, "model.safetensors")))),
    ).toMatch(/it has neither model.safetensors nor model.safetensors.index.json/)
  })
})

describe("whatever bytes change or are missing, opening fails as it should or works, soon and without much memory", () => {
  const damage = (size: number) =>
    fc.tuple(
      fc.array(fc.tuple(fc.nat(size - 1), fc.nat(255)), { maxLength: 12 }),
      fc.option(fc.nat(size)),
    )
  const opens = (path: string): void => {
    const before = process.memoryUsage()
    const startedMs = performance.now()
    try {
      openModelSource(path).close()
    } catch (cause) {
      expect(cause).toBeInstanceOf(ModelFileError)
    }
    const after = process.memoryUsage()
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(64 * 2 ** 20)
    expect(after.heapUsed - before.heapUsed).toBeLessThan(128 * 2 ** 20)
    expect(performance.now() - startedMs).toBeLessThan(2_000)
  }
  const damaged = (
    whole: Buffer,
    [changes, length]: readonly [readonly (readonly [number, number])[], number | null],
  ): Buffer => {
    const bytes = Buffer.from(whole)
    for (const [at, value] of changes) bytes[at] = value
    return bytes.subarray(0, length ?? bytes.length)
  }

  test("GGUF", () => {
    const whole = writeGguf(content)
    const path = join(root, "fuzzed.gguf")
    // most of what can break lies in the first kilobytes
    const places = fc.oneof(
      { weight: 4, arbitrary: damage(12_000) },
      { weight: 1, arbitrary: damage(whole.length) },
    )
    fc.assert(
      fc.property(places, (what) => {
        writeFileSync(path, damaged(whole, what))
        opens(path)
      }),
      { numRuns: runs(300) },
    )
  })

  test.each(["model.safetensors", "tokenizer.json", "config.json", "tokenizer_config.json"])(
    "%s of a folder",
    (file) => {
      const folder = copied("qwen2", () => {})
      const whole = readFileSync(join(folder, file))
      const places = fc.oneof(
        { weight: 4, arbitrary: damage(Math.min(3_000, whole.length)) },
        { weight: 1, arbitrary: damage(whole.length) },
      )
      fc.assert(
        fc.property(places, (what) => {
          writeFileSync(join(folder, file), damaged(whole, what))
          opens(folder)
        }),
        { numRuns: runs(100) },
      )
    },
  )

  test("as far as the graph and its session: never anything else than a refusal", async () => {
    const whole = writeGguf(content)
    const path = join(root, "fuzzed-whole.gguf")
    await fc.assert(
      fc.asyncProperty(damage(whole.length), async (what) => {
        writeFileSync(path, damaged(whole, what))
        const opened = await open(path).catch((cause: unknown) => cause)
        if (opened instanceof Error) expect(opened).toBeInstanceOf(ModelFileError)
        else await (opened as Awaited<ReturnType<typeof open>>).session.close()
      }),
      { numRuns: runs(25) },
    )
  })
})
