import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { type GgufContent, writeGguf } from "../testing/gguf-writer.ts"
import { tinyLlama, tinyShape } from "../testing/tiny-llama.ts"
import type { DecoderConfig } from "./decoder-config.ts"
import { readModelHeader } from "./model-source.ts"
import { linearlyScaled, rotationsOf } from "./rotary.ts"
import { familyGguf } from "./testing/family-gguf.ts"
import { yarnDefaults, yarnRotary } from "./yarn.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-gguf-config-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let files = 0
const configOf = (content: GgufContent): DecoderConfig => {
  const path = join(root, `${files++}.gguf`)
  writeFileSync(path, writeGguf(content))
  return readModelHeader(path).config
}

const llama = (change: GgufContent["metadata"]): DecoderConfig => {
  const content = tinyLlama()
  return configOf({ ...content, metadata: { ...content.metadata, ...change } })
}

const { ropeBase, headSize } = tinyShape

const yarn = {
  "llama.rope.scaling.type": "yarn",
  "llama.rope.scaling.factor": { f32: 4 },
  "llama.rope.scaling.original_context_length": 128,
}

test("yarn has the betas and the magnitude that a file names, as its folder has", () => {
  const { rotary } = llama({
    ...yarn,
    "llama.rope.scaling.yarn_beta_fast": { f32: 4 },
    "llama.rope.scaling.yarn_beta_slow": { f32: 2 },
    "llama.rope.scaling.yarn_attn_factor": { f32: 0.75 },
  })
  const named = { factor: 4, trainedTokens: 128, fastTurns: 4, slowTurns: 2, isWhole: true }
  const wanted = yarnRotary(ropeBase, headSize, { ...named, magnitude: 0.75 })
  expect(rotary).toEqual([wanted, wanted])
  expect(wanted.rotations).not.toEqual(
    yarnRotary(ropeBase, headSize, { ...named, ...yarnDefaults, magnitude: 0.75 }).rotations,
  )
})

test("a factor without a type scales linearly, as in llama.cpp", () => {
  const wanted = { rotations: linearlyScaled(rotationsOf(ropeBase, headSize), 4) }
  for (const name of ["rope.scaling.factor", "rope.scale_linear"])
    expect(llama({ [`llama.${name}`]: { f32: 4 } }).rotary).toEqual([wanted, wanted])
  expect(llama({ "llama.rope.scaling.factor": { f32: 0 } })).toEqual(llama({}))
  // the newer name counts
  expect(
    llama({ "llama.rope.scaling.factor": { f32: 4 }, "llama.rope.scale_linear": { f32: 2 } })
      .rotary,
  ).toEqual([wanted, wanted])
})

test("a Gemma 3 without a sliding window has global layers only", () => {
  const { metadata, tensors } = familyGguf("gemma3", "F32")
  const { "gemma3.attention.sliding_window": window, ...rest } = metadata
  expect(window).toBe(6)
  const { rotary, windows } = configOf({ metadata: rest, tensors })
  expect(windows).toEqual(new Array(7).fill(undefined))
  expect(rotary.map((one) => one === rotary[5])).toEqual(new Array(7).fill(true))
})

test("a file whose tokens see what follows is refused", () => {
  expect(llama({ "llama.attention.causal": true }).layers).toBe(2)
  expect(() => llama({ "llama.attention.causal": false })).toThrow(
    /'llama\.attention\.causal' is false: its tokens see what follows them, which/,
  )
})

test("sizes that a file has for each layer are one where all are equal, else refused by key", () => {
  const plain = llama({})
  const name = "llama.attention.head_count_kv"
  expect(llama({ [name]: [plain.kvHeads, plain.kvHeads] })).toEqual(plain)
  expect(llama({ "llama.feed_forward_length": [plain.feedForward] })).toEqual(plain)
  expect(() => llama({ [name]: [1, 2] })).toThrow(
    "'llama.attention.head_count_kv' differs between layers (1, 2), which this backend can't do",
  )
  expect(() => llama({ [name]: [] })).toThrow(/is not a number/)
})
