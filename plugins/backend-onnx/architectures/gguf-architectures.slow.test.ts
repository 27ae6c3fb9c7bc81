import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { kernelsVersion } from "../onnx/kernels.ts"
import type { Precision } from "../onnx/linear.ts"
import { seededRandom } from "../sampling/random.ts"
import { openDecoder, settledPrecision } from "../sessions/open-decoder.ts"
import {
  expectedLogits,
  expectedOf,
  fixtureFolder,
  largestGap,
  logitsIn,
  relativeError,
} from "../testing/fixtures.ts"
import { decodeAs, encodedTypes, ggmlTypeNamed } from "../testing/ggml-encode.ts"
import { architectureMetadata, byteLevelMetadata } from "../testing/gguf-of-folder.ts"
import { type GgufContent, writeGguf } from "../testing/gguf-writer.ts"
import { folderConfig } from "./folder-config.ts"
import { readModelHeader } from "./model-source.ts"
import { rotationsOf } from "./rotary.ts"
import { type FamilyName, familyGguf, ropeBase, template } from "./testing/family-gguf.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-gguf-architectures-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let files = 0
const stored = (content: GgufContent): string => {
  const path = join(root, `${files++}.gguf`)
  writeFileSync(path, writeGguf(content))
  return path
}

const logitsOf = async (path: string, precision: Precision, ids: readonly number[]) => {
  const { session } = await openDecoder(
    { path, graphs: join(root, "graphs"), precision, threads: 1 },
    () => {},
  )
  const logits = await logitsIn(session, ids, [ids.length])
  await session.close()
  return logits
}

const ggufOf = (...family: Parameters<typeof familyGguf>): string => stored(familyGguf(...family))

describe("a GGUF file of the same weights gives the same logits", () => {
  test.each(Object.keys(ropeBase) as readonly FamilyName[])("%s", async (name) => {
    const { ids } = expectedOf(name)
    for (const [i, logits] of (await logitsOf(ggufOf(name, "F32"), "fp32", ids)).entries())
      expect(largestGap(logits, expectedLogits(name)[i]!)).toBeLessThan(2e-4)
  })
})

test.each(["llama", "phi3"] as const)("a GGUF file of %s takes a LoRA of PEFT", async (name) => {
  const { ids } = expectedOf(name)
  const folder = fixtureFolder(`${name}-adapters`)
  const adapters = [{ id: "legal", path: join(folder, "legal") }]
  const spec = { path: ggufOf(name, "F32"), graphs: join(root, "graphs"), threads: 1 }
  const more = { precision: "fp32", adapters, adapterBytes: 2 ** 24 } as const
  const { session } = await openDecoder({ ...spec, ...more }, () => {})
  const logits = await logitsIn(session, ids, [ids.length], { id: "legal", strength: 1 })
  await session.close()
  const bytes = Uint8Array.from(readFileSync(join(folder, "legal.f32")))
  const wanted = new Float32Array(bytes.buffer)
  expect(wanted).toHaveLength(ids.length * logits[0]!.length)
  expect(
    largestGap(
      logits.flatMap((row) => [...row]),
      wanted,
    ),
  ).toBeLessThan(1e-3)
})

test("a GGUF file that is scaled by yarn is rotated as its folder is, in a wider window", async () => {
  const { ids } = expectedOf("qwen3")
  const path = ggufOf("qwen3", "F32", false, {
    "qwen3.rope.freq_base": { f32: 10_000 },
    "qwen3.rope.scaling.type": "yarn",
    "qwen3.rope.scaling.factor": { f32: 4 },
    "qwen3.rope.scaling.original_context_length": 128,
  })
  for (const [i, logits] of (await logitsOf(path, "fp32", ids)).entries())
    expect(largestGap(logits, expectedLogits("qwen3", "yarn")[i]!)).toBeLessThan(2e-4)
  expect(readModelHeader(path).config.contextTokens).toBe(512)
})

describe("tensors of every type answer as the numbers they stand for", () => {
  test.each(encodedTypes)("%s", async (type) => {
    const { ids } = expectedOf("qwen2")
    const [path, wanted] = [
      ggufOf("qwen2", type),
      await logitsOf(ggufOf("qwen2", type, true), "fp32", ids),
    ]
    expect(relativeError(await logitsOf(path, "fp32", ids), wanted)).toBeLessThan(1e-5)
    expect(relativeError(await logitsOf(path, "int8", ids), wanted)).toBeLessThan(0.05)
    // four bits are all that these have
    if (type.startsWith("Q4"))
      expect(relativeError(await logitsOf(path, "int4", ids), wanted)).toBeLessThan(0.05)
    expect(relativeError(wanted, expectedLogits("qwen2"))).toBeLessThan(
      { F32: 1e-5, F16: 1e-5, BF16: 0.05, Q8_0: 0.05 }[type] ?? 0.5,
    )
  })
})

describe("without a precision each matrix is kept as the file has it", () => {
  const graphOf = async (path: string, precision: Precision) => {
    const spec = { path, graphs: join(root, "graphs"), precision, threads: 1 }
    const { session, folder } = await openDecoder(spec, () => {})
    await session.close()
    return ["model.onnx", "weights.bin"].map((name) => readFileSync(join(folder, name)))
  }
  const bytesOf = async (path: string, precision: Precision) =>
    (await graphOf(path, precision))[1]!.length

  test.each([
    ["Q4_0", "int4"],
    ["Q4_1", "int4"],
    ["Q8_0", "int8"],
    ["F16", "int8"],
    ["F32", "int8"],
  ] as const)("%s in %s", async (type, precision) => {
    const path = ggufOf("qwen2", type)
    expect(settledPrecision(path, "auto")).toBe(precision)
    const [own, asked] = [await graphOf(path, "auto"), await graphOf(path, precision)]
    expect(own.map((file, i) => file.equals(asked[i]!))).toEqual([true, true])
  })

  test.skipIf(!kernelsVersion()).each(["Q5_0", "Q5_1"])("%s in 5 bits", async (type) => {
    const path = ggufOf("qwen2", type)
    expect(settledPrecision(path, "auto")).toBe("auto")
    expect(await bytesOf(path, "auto")).toBeLessThan(0.75 * (await bytesOf(path, "int8")))
    const { ids } = expectedOf("qwen2")
    const [own, exact] = [await logitsOf(path, "auto", ids), await logitsOf(path, "fp32", ids)]
    expect(relativeError(own, exact)).toBeLessThan(0.05)
  })

  test("a mixed file in both, though values and keys share a product elsewhere", async () => {
    const path = ggufOf("qwen2", (tensor) => (/attn_v|ffn_down/.test(tensor) ? "Q8_0" : "Q4_0"))
    expect(settledPrecision(path, "auto")).toBe("auto")
    expect(settledPrecision(path, "int4")).toBe("int4")
    const [mixed, int8, int4] = [
      await bytesOf(path, "auto"),
      await bytesOf(path, "int8"),
      await bytesOf(path, "int4"),
    ]
    expect(mixed).toBeLessThan(int8)
    expect(mixed).toBeGreaterThan(int4)
    const { ids } = expectedOf("qwen2")
    const error = relativeError(
      await logitsOf(path, "auto", ids),
      await logitsOf(path, "fp32", ids),
    )
    expect(error).toBeLessThan(0.05)
  })

  test("a folder's floats in 8 bits; a file that can't be read is left to its thread", () => {
    expect(settledPrecision(fixtureFolder("qwen2"), "auto")).toBe("int8")
    expect(() => settledPrecision(join(root, "absent.gguf"), "auto")).toThrow()
  })
})

/** A llama of width 256 whose matrices are random blocks, or the same as floats. */
const superBlocks = (name: string, twin: boolean): string => {
  const [width, vocabulary, feedForward, headSize] = [256, 320, 256, 32]
  const random = seededRandom(11)
  const { id, type } = ggmlTypeNamed(name)
  const config = {
    ...folderConfig(fixtureFolder("llama")),
    layers: 1,
    width,
    feedForward,
    heads: 8,
    kvHeads: 2,
    headSize,
    rotary: [{ rotations: rotationsOf(10_000, headSize) }],
  }
  // scales of about 2^-13: with factors up to 63 and levels up to 15 or 31 weights are as large as
  // usual; minimums so that they are around zero
  const halves = {
    Q2_K: { 80: 0x1400, 82: 0x1600 },
    Q3_K: { 108: 0x0c00 },
    Q4_K: { 0: 0x0800, 2: 0x1400 },
    Q5_K: { 0: 0x0400, 2: 0x1400 },
    Q6_K: { 208: 0x0800 },
    IQ4_XS: { 0: 0x0100 },
  }[name]!
  const matrix = (tensor: string, rows: number) => {
    const bytes = Uint8Array.from({ length: rows * type.blockBytes }, () =>
      Math.floor(random() * 256),
    )
    const view = new DataView(bytes.buffer)
    for (let at = 0; at < bytes.length; at += type.blockBytes)
      for (const [half, bits] of Object.entries(halves))
        view.setUint16(at + Number(half), bits + Math.floor(random() * 0x200), true)
    const floats = twin ? new Uint8Array(decodeAs(name, bytes, rows * width).buffer) : bytes
    return {
      name: `${tensor}.weight`,
      dimensions: [width, rows],
      type: twin ? 0 : id,
      bytes: floats,
    }
  }
  const ones = (tensor: string) => ({
    name: `${tensor}.weight`,
    dimensions: [width],
    type: 0,
    bytes: new Uint8Array(new Float32Array(width).fill(1).buffer),
  })
  const layer = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"].map(
    (part) => matrix(`blk.0.${part}`, part.endsWith("_k") || part.endsWith("_v") ? 64 : width),
  )
  return stored({
    metadata: {
      ...architectureMetadata(config, 10_000),
      ...byteLevelMetadata(fixtureFolder("llama"), "smollm"),
      ...template,
    },
    tensors: [
      matrix("token_embd", vocabulary),
      ones("output_norm"),
      ones("blk.0.attn_norm"),
      ones("blk.0.ffn_norm"),
      ...layer,
    ],
  })
}

const withSuperBlocks = ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"]
test.each(withSuperBlocks)("%s too, whose blocks have 256 numbers", async (name) => {
  const ids = [3, 7, 200, 40, 41]
  const [path, wanted] = [
    superBlocks(name, false),
    await logitsOf(superBlocks(name, true), "fp32", ids),
  ]
  expect(relativeError(await logitsOf(path, "fp32", ids), wanted)).toBeLessThan(1e-5)
  for (const precision of ["int8", "auto"] as const)
    expect(relativeError(await logitsOf(path, precision, ids), wanted)).toBeLessThan(0.05)
  // those of which 4 bits lose nothing
  if (["Q4_K", "IQ4_XS"].includes(name))
    expect(relativeError(await logitsOf(path, "int4", ids), wanted)).toBeLessThan(0.05)
})
