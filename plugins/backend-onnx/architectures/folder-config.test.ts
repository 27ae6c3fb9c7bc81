import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { fixtureFolder } from "../testing/fixtures.ts"
import { folderConfig } from "./folder-config.ts"
import { readConfig as read } from "./testing/read-config.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-config-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

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

describe("the kinds of layers are read where transformers reads them", () => {
  test.each([
    ["phi3", { sliding_window: 8 }, [8, 8]],
    ["phi3", { sliding_window: null }, [undefined, undefined]],
    ["qwen3-moe", { sliding_window: 8, use_sliding_window: true }, [8, 8]],
    ["qwen3-moe", { sliding_window: 8, use_sliding_window: false }, [undefined, undefined]],
    ["llama", {}, [undefined, undefined]],
    // with a list transformers makes a Ministral of it, which reads them
    ["mistral", { sliding_window: 8 }, [undefined, 8]],
  ])("%s %j", (name, change, windows) => {
    const kinds = ["full_attention", "sliding_attention"]
    const layers = { num_hidden_layers: 2, mlp_only_layers: [], layer_types: kinds, ...change }
    expect(read(name, layers).windows).toEqual(windows)
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
  [{ final_logit_softcapping: 30 }, /'final_logit_softcapping' is 30, which/],
  [{ use_bidirectional_attention: true }, /'use_bidirectional_attention' is true, which/],
  [{ hidden_activation: "gelu" }, /'hidden_activation' is 'gelu'; this backend runs 'gelu_pytorch/],
])("Gemma 3 with %j is refused", (change, reason) => {
  expect(() => read("gemma3", change)).toThrow(reason)
})

test.each([false, null])("a chat model with 'is_causal' %j is refused", (is_causal) => {
  expect(read("llama", { is_causal: true }).layers).toBe(2)
  for (const name of ["llama", "qwen3", "gemma3", "phi3"])
    expect(() => read(name, { is_causal })).toThrow(
      `'is_causal' is ${is_causal}: its tokens see what follows them, which`,
    )
})

test("SmolLM3 rotates no fourth layer, or those that its file lists", () => {
  const rotated = (change: Readonly<Record<string, unknown>>) =>
    read("smollm3", change).rotary.map((rotary) => rotary !== undefined)
  expect(rotated({ no_rope_layers: undefined })).toEqual([true, true, true, false])
  expect(rotated({ no_rope_layers: [0, 1, 1, 1] })).toEqual([false, true, true, true])
  expect(() => rotated({ no_rope_layers: [1] })).toThrow(/'no_rope_layers' is not a list of 4/)
})

describe("what a decoder of Qwen2-VL leaves out is not what other Qwen2 leave out", () => {
  const sizes = { hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, vocab_size: 300 }
  const config = (change: Readonly<Record<string, unknown>>) => {
    const own = { ...sizes, num_attention_heads: 16, head_dim: 16, ...change }
    const scaling = { rope_scaling: { type: "mrope", mrope_section: [2, 3, 3] } }
    writeFileSync(
      join(folder, "config.json"),
      JSON.stringify({ model_type: "qwen2_vl", ...own, ...scaling }),
    )
    return folderConfig(folder)
  }

  test("keys, norms and the rotary base", () => {
    const { kvHeads, normEpsilon, rotary } = config({})
    expect([kvHeads, normEpsilon]).toEqual([8, 1e-5])
    expect(rotary).toEqual(config({ rope_theta: 1_000_000 }).rotary)
    expect(rotary).not.toEqual(config({ rope_theta: 10_000 }).rotary)
    expect(config({ num_key_value_heads: 4, rms_norm_eps: 1e-6 })).toMatchObject({
      kvHeads: 4,
      normEpsilon: 1e-6,
    })
  })

  test("the first layer that slides is the eightieth", () => {
    expect(config({ use_sliding_window: true, sliding_window: 8 }).windows).toEqual([
      undefined,
      undefined,
    ])
  })
})

test("of two places of Phi's original window the model's own counts", () => {
  const scaling = (original: number | undefined) => ({
    rope_scaling: {
      type: "longrope",
      short_factor: new Array(4).fill(1),
      long_factor: new Array(4).fill(2),
      original_max_position_embeddings: original,
    },
  })
  const readOwn = (own: number | undefined, original: number | undefined) =>
    read("phi3", { original_max_position_embeddings: own, ...scaling(original) })
  expect(readOwn(64, 32).longAfter).toBe(64)
  expect(readOwn(64, 32)).toEqual(readOwn(64, undefined))
  // that of its class, where the file leaves it out
  expect(readOwn(undefined, 32).longAfter).toBe(4096)
  expect(readOwn(undefined, 32)).toEqual(readOwn(4096, 32))
})

test.each(["qwen2", "qwen3", "smollm3"])(
  "%s slides in no layer while its switch is off",
  (name) => {
    const layers = { num_hidden_layers: 2, no_rope_layers: undefined, sliding_window: 8 }
    const kinds = ["sliding_attention", "full_attention"]
    const on = { ...layers, layer_types: kinds, use_sliding_window: true }
    expect(read(name, on).windows).toEqual([8, undefined])
    expect(() => read(name, { ...on, use_sliding_window: false })).toThrow(
      /layer 0 slides, and 'use_sliding_window' is not true/,
    )
  },
)

test.each(["qwen2", "qwen3", "smollm3"])("of %s 'layer_types' null is an absent one", (name) => {
  const layers = { num_hidden_layers: 4, no_rope_layers: undefined, max_window_layers: 1 }
  for (const use_sliding_window of [true, false]) {
    const change = { ...layers, sliding_window: 8, use_sliding_window }
    const absent = read(name, { ...change, layer_types: undefined })
    expect(absent.windows.includes(8)).toBe(use_sliding_window)
    expect(read(name, { ...change, layer_types: null })).toEqual(absent)
  }
})

test("weights in 8 bits by rows of compressed-tensors are read, others are refused", () => {
  const quantized = (format: string, method = "compressed-tensors") =>
    read("llama", { quantization_config: { quant_method: method, format } })
  expect(quantized("int-quantized")).toEqual(read("llama", {}))
  for (const wrong of [() => quantized("pack-quantized"), () => quantized("", "gptq")])
    expect(wrong).toThrow(/quantized in a way that this backend can't read/)
})
