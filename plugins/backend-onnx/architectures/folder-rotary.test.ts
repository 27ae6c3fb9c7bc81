import { expect, test } from "vitest"
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
