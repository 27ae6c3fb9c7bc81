import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import type { Precision } from "../onnx/linear.ts"
import type { AdapterChoice } from "../sessions/decoder.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import {
  expectedLogits,
  expectedOf,
  fixtureFolder,
  largestGap,
  logitsIn,
  walkerOf,
} from "../testing/fixtures.ts"
import { adapterGguf } from "../testing/gguf-adapter.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-adapters-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const { ids } = expectedOf("llama")
const folderOf = (name: string, of = "llama") => join(fixtureFolder(`${of}-adapters`), name)
const wantedOf = (name: string | undefined, of = "llama"): readonly Float32Array[] => {
  if (name === undefined) return expectedLogits(of)
  const { ids } = expectedOf(of)
  const bytes = readFileSync(folderOf(`${name}.f32`, of))
  const all = new Float32Array(Uint8Array.from(bytes).buffer)
  const size = all.length / ids.length
  return ids.map((_, i) => all.subarray(i * size, (i + 1) * size))
}
const both = [
  { id: "legal", path: folderOf("legal") },
  { id: "poems", path: folderOf("poems") },
]

const open = (
  adapters: readonly { readonly id: string; readonly path: string }[],
  precision: Precision = "fp32",
  adapterBytes = 2 ** 24,
  model = "llama",
) =>
  openDecoder(
    {
      path: fixtureFolder(model),
      graphs: join(root, "graphs"),
      precision,
      threads: 1,
      adapters,
      adapterBytes,
    },
    () => {},
  )

const withStrength = (id: string, strength = 1): AdapterChoice => ({ id, strength })

describe("an adapter gives the logits of PEFT", () => {
  test.each([
    ["legal", withStrength("legal")],
    ["poems", withStrength("poems")],
    ["half", withStrength("legal", 0.5)],
    [undefined, undefined],
  ] as const)("%s, in chunks and token by token", async (name, choice) => {
    const { session } = await open(both)
    const wanted = wantedOf(name)
    for (const sizes of [[20], [7, 13], ids.map(() => 1)])
      for (const [i, logits] of (await logitsIn(session, ids, sizes, choice)).entries())
        expect(largestGap(logits, wanted[i]!)).toBeLessThan(1e-3)
    await session.close()
  })
})

test("rows with different adapters and none share a pass, and get the bits that each gets among equals", async () => {
  const { session } = await open(both, "int8")
  const run = async (choices: readonly (AdapterChoice | undefined)[]) => {
    const { step } = walkerOf(session, choices.length, 48, { adapters: choices })
    await step(choices.map(() => ids.slice(0, 9)))
    return step(choices.map(() => ids.slice(9, 11)))
  }
  const [legal, poems, none] = [withStrength("legal"), withStrength("poems"), undefined]
  const mixed = await run([poems, none, legal, none, poems])
  const own = { poems: await run([poems]), legal: await run([legal]), none: await run([none]) }
  expect(mixed.slice(0, 2)).toEqual(own.poems)
  expect(mixed.slice(2, 4)).toEqual(own.none)
  expect(mixed.slice(4, 6)).toEqual(own.legal)
  expect(mixed.slice(8, 10)).toEqual(own.poems)
  for (const [choice, wanted] of [
    [legal, own.legal],
    [poems, own.poems],
  ] as const)
    expect((await logitsIn(session, ids, [3, 1, 5, 1, 1], choice)).slice(9)).toEqual(wanted)
  await session.close()
  const bare = await open([], "int8")
  const { step } = walkerOf(bare.session, 1, 48)
  await step([ids.slice(0, 9)])
  expect(await step([ids.slice(9, 11)])).toEqual(own.none)
  await bare.session.close()
})

test("a folder with a GGUF adapter gives the same, though llama.cpp stores rotary pairs side by side", async () => {
  const folder = join(root, "legal-gguf")
  mkdirSync(folder)
  writeFileSync(
    join(folder, "legal.gguf"),
    adapterGguf(folderOf("legal"), { headSize: 8, alpha: 8 }),
  )
  const { session } = await open([{ id: "legal", path: folder }])
  const wanted = wantedOf("legal")
  for (const [i, logits] of (await logitsIn(session, ids, [20], withStrength("legal"))).entries())
    expect(largestGap(logits, wanted[i]!)).toBeLessThan(1e-3)
  await session.close()
})

test.each([undefined, 0])("a GGUF adapter whose alpha is %s has the factor 1", async (alpha) => {
  const file = join(root, `alpha-${alpha}.gguf`)
  writeFileSync(file, adapterGguf(folderOf("legal"), { headSize: 8, alpha }))
  const { session } = await open([{ id: "legal", path: file }])
  // PEFT's factor of this adapter is 2
  const wanted = wantedOf("half")
  for (const [i, logits] of (await logitsIn(session, ids, [20], withStrength("legal"))).entries())
    expect(largestGap(logits, wanted[i]!)).toBeLessThan(1e-3)
  await session.close()
})

test("matrices that a model has joined are adapted together, from either format", async () => {
  const file = join(root, "phi3.gguf")
  const options = { headSize: 8, alpha: 8, architecture: "phi3" } as const
  writeFileSync(file, adapterGguf(folderOf("legal", "phi3"), options))
  const own = expectedOf("phi3").ids
  for (const path of [folderOf("legal", "phi3"), file]) {
    const { session } = await open([{ id: "legal", path }], "fp32", 2 ** 24, "phi3")
    const wanted = wantedOf("legal", "phi3")
    for (const [i, logits] of (await logitsIn(session, own, [20], withStrength("legal"))).entries())
      expect(largestGap(logits, wanted[i]!)).toBeLessThan(1e-3)
    await session.close()
  }
})

describe("refuses at load, by name", () => {
  let folders = 0
  const changed = (change: Readonly<Record<string, unknown>>): string => {
    const folder = join(root, `changed-${folders++}`)
    cpSync(folderOf("legal"), folder, { recursive: true })
    const file = join(folder, "adapter_config.json")
    const config = JSON.parse(readFileSync(file, "utf8")) as object
    writeFileSync(file, JSON.stringify({ ...config, ...change }))
    return folder
  }
  test.each<readonly [string, Readonly<Record<string, unknown>>, RegExp]>([
    ["DoRA", { use_dora: true }, /a DoRA \(use_dora\)/],
    ["whole modules", { modules_to_save: ["lm_head"] }, /modules_to_save/],
    ["biases", { bias: "all" }, /biases \(bias: all\)/],
    ["other methods", { peft_type: "IA3" }, /it is a IA3/],
    ["what came after this backend", { use_new_idea: 3 }, /use_new_idea/],
    ["a model that was changed too", { init_lora_weights: "pissa_niter_4" }, /'pissa_niter_4'/],
    ["a beginning that nobody knows", { init_lora_weights: "milora" }, /'milora', not with one of/],
    ["another rank than promised", { r: 8 }, /layers\.0\.\S+' has the rank 4, .* says 8/],
    [
      "patterns that JavaScript reads otherwise",
      { rank_pattern: { "(?!q)v": 4 } },
      /'\(\?!q\)v', which this backend can't read\. Name an adapter of/,
    ],
    ["ranks that are no map", { rank_pattern: [3] }, /: 'rank_pattern' is not an object/],
    ["alphas that are no map", { alpha_pattern: 5 }, /: 'alpha_pattern' is not an object/],
    ["an alpha that is a text", { lora_alpha: "16" }, /: 'lora_alpha' is not a number/],
    ["a flag that is a text", { use_rslora: "true" }, /: 'use_rslora' is not true or false/],
    ["a flag that is a number", { use_rslora: 1 }, /: 'use_rslora' is not true or false/],
  ])("%s", async (_, change, reason) => {
    await expect(open([{ id: "a", path: changed(change) }])).rejects.toThrow(reason)
  })

  test("too large an adapter, by its header: no value is read before", async () => {
    const path = changed({})
    const file = join(path, "adapter_model.safetensors")
    const bytes = readFileSync(file)
    // no value is finite, so that reading one would be another error
    bytes.fill(0xff, 8 + Number(bytes.readBigUInt64LE(0)))
    writeFileSync(file, bytes)
    const spec = [{ id: "a", path }]
    await expect(open(spec, "fp32", 10_000)).rejects.toThrow(/adapterMemoryMb/)
    await expect(open([...both, ...spec], "fp32", 100_000)).rejects.toThrow(/adapterMemoryMb/)
    await expect(open(spec)).rejects.toThrow(/a value that is not a finite number/)
  })

  test("but takes null for what a config leaves out", async () => {
    const path = changed({ use_rslora: null, rank_pattern: null, alpha_pattern: null })
    const { session } = await open([{ id: "legal", path }])
    const wanted = wantedOf("legal")
    for (const [i, logits] of (await logitsIn(session, ids, [20], withStrength("legal"))).entries())
      expect(largestGap(logits, wanted[i]!)).toBeLessThan(1e-3)
    await session.close()
  })

  test("shapes of another model, modules that take none, and what does not fit", async () => {
    const gguf = (name: string, more: Parameters<typeof adapterGguf>[1]) => {
      const path = join(root, name)
      writeFileSync(path, adapterGguf(folderOf("legal"), more))
      return [{ id: "a", path }]
    }
    const sizes = { headSize: 8, alpha: 8 }
    await expect(
      open(gguf("rename.gguf", { ...sizes, rename: (n) => n.replace("blk.1.", "blk.2.") })),
    ).rejects.toThrow(/'blk\.2\.\w+\.weight\.lora_[ab]'.* of 2 layers/)
    await expect(
      open(gguf("head.gguf", { ...sizes, rename: (n) => n.replace("blk.0.attn_q", "output") })),
    ).rejects.toThrow(/'output\.weight\.lora_a'/)
    await expect(
      open(
        gguf("wide.gguf", {
          ...sizes,
          rename: (n) =>
            n.replace(/ffn_(gate|down)/, (_, p) => `ffn_${p === "gate" ? "down" : "gate"}`),
        }),
      ),
    ).rejects.toThrow(
      /'blk\.\d\.ffn_\w+\.weight\.lora_[ab]' is 4 x \d+, .*model asks for 4 x \d+\. Name an adapter that/,
    )
    await expect(open(gguf("arch.gguf", { ...sizes, architecture: "qwen2" }))).rejects.toThrow(
      /made for the architecture 'qwen2', and the model is a llama/,
    )
    await expect(open(gguf("alpha.gguf", { ...sizes, alpha: "8" }))).rejects.toThrow(
      /alpha\.gguf: 'adapter\.lora\.alpha' is not a number/,
    )
    await expect(open(both, "fp32", 100_000)).rejects.toThrow(/adapterMemoryMb/)
    await expect(open([{ id: "a", path: fixtureFolder("llama") }])).rejects.toThrow(
      /adapter_config\.json: it is missing/,
    )
  })
})
