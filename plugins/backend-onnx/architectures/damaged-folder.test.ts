import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { u64 } from "../testing/gguf-writer.ts"
import { changeSafetensors } from "../testing/safetensors-writer.ts"
import { refusedFiles } from "./testing/refused-files.ts"

const { copied, refusal } = refusedFiles()

const config = (change: Readonly<Record<string, unknown>>) => (folder: string) => {
  const json = JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as Record<
    string,
    unknown
  >
  writeFileSync(join(folder, "config.json"), JSON.stringify({ ...json, ...change }))
}
const safetensors = (change: Parameters<typeof changeSafetensors>[1]) => (folder: string) =>
  changeSafetensors(folder, change)
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
      /'quantization_config': 'gptq'\)\. Name the model's plain files/,
    ],
    [
      "with another rotary scaling",
      "qwen2",
      config({ rope_parameters: null, rope_scaling: { rope_type: "longrope", factor: 4 } }),
      /scaled by the 'rope_type' 'longrope', which this backend can't do here/,
    ],
    [
      "with an epsilon that no norm can have",
      "qwen2",
      config({ rms_norm_eps: -1e-6 }),
      /config.json: 'rms_norm_eps' is -0.000001, which is less than 0/,
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
      "with a bias, while its configuration says that there is none",
      "llama",
      safetensors((entries) => {
        entries["model.layers.0.self_attn.o_proj.bias"] = entries["model.norm.weight"]!
      }),
      /has the tensor 'model.layers.0.self_attn.o_proj.bias', which a llama of 2 layers has no/,
    ],
    [
      "without a bias that its configuration says it has",
      "llama",
      config({ mlp_bias: true }),
      /'model.layers.0.mlp.gate_proj.bias' is missing/,
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
      safetensors((entries) => Object.assign(entries[up]!, { dtype: "I16" })),
      /up_proj.weight' has the type I16/,
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
