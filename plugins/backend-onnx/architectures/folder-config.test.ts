import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { fixtureFolder } from "../testing/fixtures.ts"
import { folderConfig } from "./folder-config.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-config-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A fixture's config.json with these changes; `undefined` leaves a key out. */
const read = (name: string, change: Readonly<Record<string, unknown>>) => {
  const config = JSON.parse(
    readFileSync(join(fixtureFolder(name), "config.json"), "utf8"),
  ) as Readonly<Record<string, unknown>>
  writeFileSync(
    join(folder, "config.json"),
    JSON.stringify({ ...config, max_position_embeddings: 8192, ...change }),
  )
  return folderConfig(folder)
}

describe("a window that is left out is the one of the architecture's class, as transformers has it; null is none", () => {
  test.each([
    ["mistral", {}, [4096, 4096]],
    ["mistral", { sliding_window: null }, [undefined, undefined]],
    ["mistral", { sliding_window: 8 }, [8, 8]],
    [
      "qwen2",
      { use_sliding_window: true, max_window_layers: 1, layer_types: undefined },
      [undefined, 4096],
    ],
    ["qwen2", { use_sliding_window: false }, [undefined, undefined]],
    ["llama", { sliding_window: 8 }, [undefined, undefined]],
  ])("%s %j", (name, change, windows) => {
    expect(read(name, { sliding_window: undefined, ...change }).windows).toEqual(windows)
  })
})

describe("heads for keys: null is as many as heads, left out is the architecture's number", () => {
  test.each([
    ["mistral", { num_key_value_heads: null }, 4],
    ["mistral", { num_key_value_heads: undefined, num_attention_heads: 16 }, 8],
    ["llama", { num_key_value_heads: undefined }, 4],
  ])("%s %j", (name, change, kvHeads) => {
    expect(read(name, change).kvHeads).toBe(kvHeads)
  })
})

describe("Gemma 3's configurations of all ages say the same", () => {
  const old = {
    rope_parameters: undefined,
    layer_types: undefined,
    rope_theta: 1_000_000,
    rope_local_base_freq: 10_000,
    rope_scaling: { rope_type: "linear", factor: 8 },
  }
  const wanted = read("gemma3", {})
  test.each([
    ["of transformers 4", { ...old, sliding_window_pattern: 6 }],
    ["with defaults left out", { ...old, rope_theta: undefined, rope_local_base_freq: undefined }],
  ])("%s", (_, change) => {
    expect(read("gemma3", change)).toEqual(wanted)
  })

  test("and inside one that reads images", () => {
    const config = JSON.parse(
      readFileSync(join(fixtureFolder("gemma3"), "config.json"), "utf8"),
    ) as Readonly<Record<string, unknown>>
    const nested = { text_config: { ...config, max_position_embeddings: 8192 } }
    writeFileSync(
      join(folder, "config.json"),
      JSON.stringify({ model_type: "gemma3", vision_config: {}, ...nested }),
    )
    expect(folderConfig(folder)).toEqual(wanted)
  })

  test("layers that see everything have another rotary base", () => {
    const { rotary, windows } = wanted
    expect(windows).toEqual([6, 6, 6, 6, 6, undefined, 6])
    expect(rotary.map((one) => one === rotary[5])).toEqual(windows.map((one) => one === undefined))
  })
})

test.each([
  [{ final_logit_softcapping: 30 }, /'final_logit_softcapping', which/],
  [{ use_bidirectional_attention: true }, /'use_bidirectional_attention', which/],
  [{ hidden_activation: "gelu" }, /'hidden_activation' is 'gelu'; this backend runs 'gelu_pytorch/],
])("Gemma 3 with %j is refused", (change, reason) => {
  expect(() => read("gemma3", change)).toThrow(reason)
})

test("SmolLM3 rotates no fourth layer, or those that its file lists", () => {
  const rotated = (change: Readonly<Record<string, unknown>>) =>
    read("smollm3", change).rotary.map((rotary) => rotary !== undefined)
  expect(rotated({ no_rope_layers: undefined })).toEqual([true, true, true, false])
  expect(rotated({ no_rope_layers: [0, 1, 1, 1] })).toEqual([false, true, true, true])
  expect(() => rotated({ no_rope_layers: [1] })).toThrow(/'no_rope_layers' is not a list of 4/)
})
