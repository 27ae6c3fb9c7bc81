import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { fixtureFolder } from "../testing/fixtures.ts"
import { valuesOf } from "../testing/gguf-of-folder.ts"
import { type FloatTensor, writeSafetensors } from "../testing/safetensors-writer.ts"
import { openSafetensors } from "../weights/safetensors.ts"
import { type LowRankPair, withAdapterFile } from "./adapter-file.ts"
import { folderConfig } from "./folder-config.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-peft-names-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const config = folderConfig(fixtureFolder("llama"))
const legal = join(fixtureFolder("llama-adapters"), "legal")
const poems = join(fixtureFolder("llama-adapters"), "poems")

const pairsIn = (folder: string): readonly LowRankPair[] =>
  withAdapterFile(folder, config, ({ pairs }) => [...pairs()]).toSorted(
    (one, other) => one.layer - other.layer || one.part.localeCompare(other.part),
  )

const tensors = (): readonly FloatTensor[] => {
  const source = openSafetensors(join(legal, "adapter_model.safetensors"))
  const all = [...source.names()].map((name) => {
    const { rows, columns } = source.tensor(name)
    return { name, shape: [rows, columns], values: valuesOf(source, name) }
  })
  source.close()
  return all
}

let folders = 0
const folderWith = (own: readonly FloatTensor[]): string => {
  const folder = join(root, `${folders++}`)
  cpSync(legal, folder, { recursive: true })
  writeFileSync(join(folder, "adapter_model.safetensors"), writeSafetensors(own))
  return folder
}
const renamed = (rename: (name: string) => string): string =>
  folderWith(tensors().map((tensor) => ({ ...tensor, name: rename(tensor.name) })))

const bare = (name: string) => name.replace("base_model.model.", "")
const inMemory = (name: string) => name.replace(".weight", ".default.weight")

test.each<readonly [string, (name: string) => string]>([
  ["the adapter's name, as in memory", inMemory],
  ["another name of the adapter", (name) => name.replace(".weight", ".my-lora_1.weight")],
  ["no prefix", bare],
  ["no prefix, and the adapter's name", (name) => bare(inMemory(name))],
  ["names of the model alone", (name) => name.replace("base_model.model.model.", "")],
  ["torch.compile", (name) => name.replace("base_model.model.", "base_model.model._orig_mod.")],
  ["DistributedDataParallel", (name) => `module.${name}`],
  [
    "FSDP around each layer",
    (name) => name.replace(/(layers\.\d\.)/, "$1_fsdp_wrapped_module._checkpoint_wrapped_module."),
  ],
])("reads tensors named with %s", (_, rename) => {
  expect(pairsIn(renamed(rename))).toEqual(pairsIn(legal))
})

test("refuses several adapters in one file, a matrix that is there twice, and one without the other", () => {
  const mixed = renamed((name) => (name.includes("q_proj") ? inMemory(name) : name))
  expect(() => pairsIn(mixed)).toThrow(
    /it holds several adapters, by the tensors 'base_model\S+\.weight' and 'base_model\S+\.default\.weight'\. Save each in a folder/,
  )
  const own = tensors()
  const again = own.slice(0, 2).map((tensor) => ({ ...tensor, name: bare(tensor.name) }))
  expect(() => pairsIn(folderWith([...own, ...again]))).toThrow(
    /it has 'model\.layers\.0\.mlp\.down_proj' twice, by the tensors 'base_model\S+' and 'model\S+'/,
  )
  expect(() => pairsIn(folderWith(own.slice(1)))).toThrow(
    /its layer 'model\.layers\.0\.mlp\.down_proj' has one matrix of a LoRA without the other/,
  )
})

test("refuses tensors whose shards were not gathered, by name", () => {
  const [first, ...rest] = tensors()
  for (const shape of [[0], [0, 64]])
    expect(() =>
      pairsIn(folderWith([{ ...first!, shape, values: new Float32Array() }, ...rest])),
    ).toThrow(/'base_model\S+down_proj\.lora_A\.weight'/)
})

test("says of a transposed matrix that its rank is not the promised one", () => {
  const turned = tensors().map(({ shape, ...tensor }) => ({
    ...tensor,
    shape: shape.toReversed(),
  }))
  expect(() => pairsIn(folderWith(turned))).toThrow(
    /the adapter of 'model\.layers\.0\.mlp\.down_proj' has the rank 64, its adapter_config\.json says 4/,
  )
})

test("says what an adapter without its weights has in place of them", () => {
  const without = (...names: readonly string[]): string => {
    const folder = folderWith([])
    rmSync(join(folder, "adapter_model.safetensors"))
    for (const name of names) writeFileSync(join(folder, name), "")
    return folder
  }
  expect(() => pairsIn(without())).toThrow(
    /: it has no adapter_model\.safetensors\. Save it as one/,
  )
  expect(() => pairsIn(without("adapter_model.bin"))).toThrow(
    /are in adapter_model\.bin, whose format can run code\. Save it as one adapter_model\.safet/,
  )
  const shards = [2, 1].map((at) => `adapter_model-0000${at}-of-00002.safetensors`)
  expect(() => pairsIn(without(...shards, "adapter_model.safetensors.index.json"))).toThrow(
    /: its weights are in 2 files, such as adapter_model-00001-of-00002\.safetensors\. Save it/,
  )
})

test("says of another program's adapter_config.json that it is none of PEFT", () => {
  const folder = folderWith(tensors())
  const config = { fine_tune_type: "lora", lora_parameters: { rank: 4 } }
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify(config))
  expect(() => pairsIn(folder)).toThrow(/it has no 'peft_type': it is no adapter of PEFT/)
})

test("names each matrix once where it says which ones can be adapted", () => {
  const phi = folderConfig(fixtureFolder("phi3"))
  expect(() => withAdapterFile(legal, phi, () => {})).toThrow(
    /adapts the matrices self_attn\.qkv_proj, self_attn\.o_proj, mlp\.gate_up_proj, mlp\.down_proj of 2 layers only/,
  )
})

/** The folder `poems`, whose patterns are `{ down_proj: 3 }` and `{ v_proj: 6 }`. */
const withPatterns = (ranks: object, alphas: object): string => {
  const folder = join(root, `${folders++}`)
  cpSync(poems, folder, { recursive: true })
  const file = join(folder, "adapter_config.json")
  const json = JSON.parse(readFileSync(file, "utf8")) as object
  writeFileSync(file, JSON.stringify({ ...json, rank_pattern: ranks, alpha_pattern: alphas }))
  return folder
}

test.each<readonly [object, object]>([
  [{ "(up|down)_proj": 3 }, { "(?:v)_proj": 6 }],
  [{ "mlp\\..*": 3 }, { "^model\\.layers\\.\\d+\\.self_attn\\.v_proj$": 6 }],
  [{ "model.layers.1.mlp.down_proj": 3 }, { "[^qk.]_proj": 6 }],
  // the first that matches, and whole names only
  [{ down: 9, proj: 9, "d.+proj": 3, down_proj: 9 }, { "layers.[0-9]{1,2}.self_attn.v_proj": 6 }],
])("reads the expressions %j and %j as PEFT does", (ranks, alphas) => {
  expect(pairsIn(withPatterns(ranks, alphas))).toEqual(pairsIn(poems))
})

test.each([
  "(?i)q_proj",
  "(?P<part>q)_proj",
  "(?!q)k_proj",
  "q_proj)",
  "q{,3}_proj",
  "(a+)+",
  "(a|a)*b",
  ".*.*.*.*.*q",
  "(a|b)".repeat(9),
  "a?".repeat(5),
  "\\bq_proj",
  "",
])("refuses the expression %j", (expression) => {
  expect(() => pairsIn(withPatterns({ [expression]: 3 }, {}))).toThrow(
    /its rank_pattern names modules by the expression '.*', which this backend can't read/,
  )
})

test("refuses more expressions than an adapter has use for", () => {
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`q${i}.*`, 3]))
  expect(() => pairsIn(withPatterns(many, {}))).toThrow(/rank_pattern has more than 64 expressions/)
})
