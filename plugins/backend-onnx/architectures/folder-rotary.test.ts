import { describe, expect, test } from "vitest"
import { readConfig } from "./testing/read-config.ts"

const linear = (factor: number) => ({ rope_type: "linear", factor })

test("where rope_scaling and rope_parameters are given, the older key counts", () => {
  const wanted = readConfig("llama", { rope_parameters: undefined, rope_scaling: linear(4) })
  const both = { rope_parameters: linear(2), rope_scaling: linear(4) }
  expect(readConfig("llama", both)).toEqual(wanted)
  const empty = { rope_parameters: linear(4), rope_scaling: {} }
  expect(readConfig("llama", empty)).toEqual(wanted)
})

test("of Gemma's it changes the layers that see everything", () => {
  const kinds = (full: object) => ({
    full_attention: { rope_theta: 1e6, ...full },
    sliding_attention: { rope_type: "default", rope_theta: 1e4 },
  })
  const wanted = readConfig("gemma3", { rope_parameters: kinds(linear(4)) })
  const both = { rope_parameters: kinds(linear(2)), rope_scaling: linear(4) }
  expect(readConfig("gemma3", both)).toEqual(wanted)
})

test("the original window of llama3's scaling: the model's, the scaling's, or its whole one", () => {
  const read = (inside: number | undefined, outside: number | undefined) =>
    readConfig("llama", {
      max_position_embeddings: 512,
      original_max_position_embeddings: outside,
      rope_parameters: {
        rope_type: "llama3",
        ...{ factor: 8, low_freq_factor: 1, high_freq_factor: 4 },
        original_max_position_embeddings: inside,
      },
    })
  const [of64, of128] = [read(64, undefined), read(128, undefined)]
  expect(of64).not.toEqual(of128)
  expect(read(64, 128)).toEqual(of128)
  expect(read(undefined, 64)).toEqual(of64)
  expect(read(undefined, undefined)).toEqual(read(512, undefined))
})

test("windows that a Phi leaves out are 4096", () => {
  const read = (original: number | undefined, all: number | undefined) =>
    readConfig("phi3", {
      max_position_embeddings: all,
      original_max_position_embeddings: original,
      rope_scaling: {
        type: "longrope",
        ...{ short_factor: new Array(4).fill(1), long_factor: new Array(4).fill(2) },
      },
    })
  expect(read(undefined, 8192)).toEqual(read(4096, 8192))
  expect(read(64, undefined)).toEqual(read(64, 4096))
  expect(read(64, undefined)).not.toEqual(read(64, 64))
})

describe("yarn", () => {
  const yarn = (change: object) => ({ rope_type: "yarn", factor: 4, ...change })
  const read = (scaling: object, change: object = {}) =>
    readConfig("qwen3", { rope_parameters: scaling, max_position_embeddings: 128, ...change })

  test("widens the window where config.json says less", () => {
    const of = (original: number, all: number, factor?: number | null) =>
      read(
        yarn({
          original_max_position_embeddings: original,
          ...(factor !== undefined && { factor }),
        }),
        { max_position_embeddings: all },
      ).contextTokens
    expect([of(32_768, 40_960), of(32, 512), of(100, 128, 1.5)]).toEqual([131_072, 512, 150])
    // without a factor it is the ratio of the two
    expect(of(32, 128, null)).toBe(128)
  })

  test("of older files is named by the key `type`", () => {
    const { rope_type: type, ...rest } = yarn({ original_max_position_embeddings: 32 })
    const older = { rope_parameters: undefined, rope_scaling: { type, ...rest } }
    expect(read({}, older)).toEqual(read({ rope_type: type, ...rest }))
  })

  test("has the ratio of the windows as its factor where that is null", () => {
    const window = { original_max_position_embeddings: 32 }
    expect(read(yarn({ factor: null, ...window })).rotary).toEqual(read(yarn(window)).rotary)
  })

  test("of Gemma's changes the layers that see everything", () => {
    const kinds = (full: object) => ({
      full_attention: { rope_theta: 1e6, ...full },
      sliding_attention: { rope_type: "default", rope_theta: 1e4 },
    })
    const [one, plain] = [yarn({ original_max_position_embeddings: 32 }), {}].map((full) =>
      readConfig("gemma3", { rope_parameters: kinds(full) }),
    )
    const changed = one!.rotary.map(
      (rotary, i) => rotary!.rotations.at(-1) !== plain!.rotary[i]!.rotations.at(-1),
    )
    const isFull = one!.windows.map((window) => window === undefined)
    expect(changed).toEqual(isFull)
    expect(one!.rotary.map((rotary) => rotary!.magnitude !== undefined)).toEqual(isFull)
  })

  test.each([
    [yarn({ factor: 0 }), /the rotary scaling factor 0 is impossible/],
    [yarn({ factor: "four" }), /'factor' is not a number/],
    [
      yarn({ beta_fast: -1 }),
      /its rotary scaling is impossible: 'beta_fast' -1, 'beta_slow' 1, base 10000/,
    ],
  ])("with %j is refused", (scaling, reason) => {
    expect(() => read(scaling)).toThrow(reason)
  })
})

test("dynamic scaling is that of longer texts than the window, which are not read", () => {
  const dynamic = { rope_type: "dynamic", factor: 4, rope_theta: 1e5 }
  const plain = { rope_type: "default", rope_theta: 1e5 }
  expect(readConfig("llama", { rope_parameters: dynamic })).toEqual(
    readConfig("llama", { rope_parameters: plain }),
  )
})

test("of Gemma's parameters that name no kind of layers none counts, as in transformers", () => {
  const plain = readConfig("gemma3", { rope_parameters: undefined })
  const flat = { rope_type: "linear", factor: 8, rope_theta: 5e3 }
  expect(readConfig("gemma3", { rope_parameters: flat })).toEqual(plain)
  const theta = { rope_theta: 7e3 }
  expect(readConfig("gemma3", { rope_parameters: flat, ...theta })).toEqual(
    readConfig("gemma3", { rope_parameters: undefined, ...theta }),
  )
})
