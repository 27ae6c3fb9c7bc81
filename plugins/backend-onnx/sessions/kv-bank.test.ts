import { constants } from "node:buffer"
import { expect, test } from "vitest"
import { layersOfBanks } from "../onnx/native-attention.ts"
import { mostBankTokens, roundedCapacity, windowWithin } from "./kv-bank.ts"

/** Phi-3 mini */
const shape = { layers: 32, kvHeads: 32, headSize: 96, contextTokens: 131_072 }

test("a bank has at most as many numbers as an array, with all its rows", () => {
  const numbers = 2 * 16 * shape.kvHeads * shape.headSize
  const most = mostBankTokens(shape, layersOfBanks(shape))
  expect(most * numbers).toBeLessThanOrEqual(constants.MAX_LENGTH)
  expect((most + 1) * numbers).toBeGreaterThan(constants.MAX_LENGTH)
  // each layer has arrays of its own without native kernels
  expect(mostBankTokens(shape)).toBeGreaterThan(31 * most)
})

test("a window is as long as memory allows, and as the store of its capacity", () => {
  const memory = 64 * 2 ** 30
  expect(windowWithin(shape, memory)).toBe(87_381)
  const window = windowWithin(shape, memory, 43_690)
  expect(window).toBeGreaterThan(32_000)
  expect(roundedCapacity(window)).toBeLessThanOrEqual(43_690)
})
