import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import type { Precision } from "../onnx/linear.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import {
  checkpoints,
  expectedLogits,
  expectedOf,
  fixtureFolder,
  largestGap,
  logitsIn,
  relativeError,
  walkerOf,
} from "../testing/fixtures.ts"
import { valuesOf } from "../testing/gguf-of-folder.ts"
import { changeSafetensors, writeSafetensors } from "../testing/safetensors-writer.ts"
import { openSafetensors } from "../weights/safetensors.ts"
import { folderConfig } from "./folder-config.ts"
import { openModelSource } from "./model-source.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-architectures-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const open = (path: string, precision: Precision) =>
  openDecoder({ path, graphs: join(root, "graphs"), precision, threads: 1 }, () => {})

const readJsonFile = (path: string) =>
  JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<string, unknown>>

let folders = 0
/** A copy of the fixture with changes to its config.json. */
const changed = (name: string, change: Readonly<Record<string, unknown>>): string => {
  const folder = join(root, `${name}-${folders++}`)
  cpSync(fixtureFolder(name), folder, { recursive: true })
  const config = readJsonFile(join(folder, "config.json"))
  // variants name their rotation by the newer key, which counts only without the older one
  const older = change.rope_parameters ? { rope_scaling: undefined } : {}
  writeFileSync(join(folder, "config.json"), JSON.stringify({ ...config, ...older, ...change }))
  return folder
}

const variants = checkpoints.flatMap((name) => [
  [name, undefined] as const,
  ...Object.keys(expectedOf(name).variants).map((variant) => [name, variant] as const),
])

const opened = async (name: string, variant: string | undefined, precision: Precision) =>
  open(
    variant ? changed(name, expectedOf(name).variants[variant]!) : fixtureFolder(name),
    precision,
  )

describe("in fp32 a checkpoint gives the logits of another implementation", () => {
  test.each(variants)("%s %s, token by token and in chunks", async (name, variant) => {
    const { ids } = expectedOf(name)
    const wanted = expectedLogits(name, variant)
    const { session } = await opened(name, variant, "fp32")
    for (const sizes of [ids.map(() => 1), [20], [7, 13], [1, 18, 1]])
      for (const [i, logits] of (await logitsIn(session, ids, sizes)).entries())
        expect(largestGap(logits, wanted[i]!)).toBeLessThan(2e-4)
    await session.close()
  })

  test("the variants differ, so a switch that is ignored is seen", () => {
    for (const [name, variant] of variants)
      if (variant)
        expect(relativeError(expectedLogits(name, variant), expectedLogits(name))).toBeGreaterThan(
          0.05,
        )
  })
})

describe("rows of different lengths in one step answer what each answers alone", () => {
  test.each(checkpoints)("%s", async (name) => {
    const { ids } = expectedOf(name)
    const wanted = expectedLogits(name)
    const { session } = await opened(name, undefined, "fp32")
    const { step, pastLens } = walkerOf(session, 3, 48, { reach: 20 })
    await step([ids.slice(0, 5), ids.slice(0, 5), ids.slice(5, 10)], [true, true, false])
    await step([ids.slice(5, 9), ids.slice(0, 4), ids.slice(0, 4)], [true, false, true])
    expect(pastLens).toEqual([9, 5, 4])
    const mixed = await step([ids.slice(9, 11), ids.slice(5, 7), ids.slice(4, 6)])
    for (const [i, at] of [9, 10, 5, 6, 4, 5].entries())
      expect(largestGap(mixed[i]!, wanted[at]!)).toBeLessThan(2e-4)
    await session.close()
  })
})

// root mean square error relative to that of the logits; random weights are harder to quantize than
// trained ones, and more layers add up
const tolerance = { int8: 0.1, int4: 0.5, fp16: 2e-3 } as const

describe.each(["int8", "int4", "fp16"] as const)("%s stays close", (precision) => {
  test.each(checkpoints)("%s", async (name) => {
    const { ids } = expectedOf(name)
    const { session } = await opened(name, undefined, precision)
    const error = relativeError(await logitsIn(session, ids, [20]), expectedLogits(name))
    expect(error).toBeLessThan(tolerance[precision])
    // a graph that was built in another precision would be closer
    expect(error).toBeGreaterThan(precision === "fp16" ? 1e-5 : 1e-4)
    await session.close()
  })
})

describe("what a folder's switches say of its tensors", () => {
  test("a head of its own is used, though the file says that it is tied", async () => {
    const { ids } = expectedOf("qwen3")
    const { session } = await open(changed("qwen3", { tie_word_embeddings: true }), "fp32")
    for (const [i, logits] of (await logitsIn(session, ids, [ids.length])).entries())
      expect(largestGap(logits, expectedLogits("qwen3")[i]!)).toBeLessThan(2e-4)
    await session.close()
  })

  test("a head that repeats the embedding is tied", () => {
    const folder = changed("llama", {})
    changeSafetensors(folder, (entries) => {
      entries["lm_head.weight"] = entries["model.embed_tokens.weight"]!
    })
    const source = openModelSource(folder)
    expect(source.config.tiedHead).toBe(true)
    source.close()
  })
})

describe("experts in two tensors of a layer, as transformers 5 has them in memory", () => {
  const together = (): string => {
    const folder = changed("qwen3-moe", {})
    const file = openSafetensors(join(folder, "model.safetensors"))
    const tensors = new Map<string, { shape: number[]; values: Float32Array }>()
    for (const name of file.names()) {
      const { rows, columns } = file.tensor(name)
      const [, stem, expert, part] = /^(.*\.experts\.)(\d+)\.(.*)_proj\.weight$/.exec(name) ?? []
      const values = valuesOf(file, name)
      if (part === undefined) {
        tensors.set(name, { shape: rows === 1 ? [columns] : [rows, columns], values })
        continue
      }
      const [whole, size, offset] =
        part === "down"
          ? ["down_proj", rows, 0]
          : ["gate_up_proj", 2 * rows, part === "up" ? rows : 0]
      const { experts } = folderConfig(folder)
      const fused = tensors.get(`${stem}${whole}`) ?? {
        shape: [experts!.count, size, columns],
        values: new Float32Array(experts!.count * size * columns),
      }
      fused.values.set(values, (Number(expert) * size + offset) * columns)
      tensors.set(`${stem}${whole}`, fused)
    }
    file.close()
    writeFileSync(
      join(folder, "model.safetensors"),
      writeSafetensors([...tensors].map(([name, tensor]) => ({ name, ...tensor }))),
    )
    return folder
  }

  test("are those of the checkpoint", async () => {
    const { ids } = expectedOf("qwen3-moe")
    const { session } = await open(together(), "fp32")
    for (const [i, logits] of (await logitsIn(session, ids, [ids.length])).entries())
      expect(largestGap(logits, expectedLogits("qwen3-moe")[i]!)).toBeLessThan(2e-4)
    await session.close()
  })

  test("are refused where rows and columns of each are exchanged", () => {
    const folder = together()
    changeSafetensors(folder, (entries) => {
      const name = Object.keys(entries).find((each) => each.endsWith("experts.gate_up_proj"))!
      const [experts, rows, columns] = entries[name]!.shape as [number, number, number]
      entries[name]!.shape = [experts, columns, rows]
    })
    expect(() => openModelSource(folder)).toThrow(
      /experts\.gate_up_proj' has matrices of 32 rows, its configuration asks for 64/,
    )
  })
})

describe("of a Gemma 3 that reads images the language model is used", () => {
  test.each(["language_model.model.", "model.language_model."])("named %s", async (place) => {
    const folder = changed("gemma3", {})
    const config = readJsonFile(join(folder, "config.json"))
    writeFileSync(
      join(folder, "config.json"),
      JSON.stringify({ model_type: "gemma3", text_config: config, eos_token_id: [1, 5] }),
    )
    changeSafetensors(folder, (entries) => {
      const all = Object.entries(entries)
      for (const [name, tensor] of all) {
        delete entries[name]
        entries[name.replace(/^model\./, place)] = tensor
      }
      const vision = `${place.startsWith("model") ? "model." : ""}vision_tower.patch.weight`
      entries[vision] = all.at(-1)![1]
    })
    const { ids } = expectedOf("gemma3")
    const { session } = await open(folder, "fp32")
    const [found] = await logitsIn(session, ids, [20])
    expect(largestGap(found!, expectedLogits("gemma3")[0]!)).toBeLessThan(2e-4)
    await session.close()
  })
})

test("ids that end an answer come from every file that names them", async () => {
  const ends = async (name: string) => {
    const decoder = await open(fixtureFolder(name), "fp32")
    await decoder.session.close()
    return [...decoder.endTokens].sort((a, b) => a - b)
  }
  // <|end_of_text|> and <|eot_id|>; </s>; <|endoftext|> and <|im_end|>
  expect([await ends("llama3-sharded"), await ends("mistral"), await ends("qwen2")]).toEqual([
    [1, 4],
    [2],
    [0, 2],
  ])
})
