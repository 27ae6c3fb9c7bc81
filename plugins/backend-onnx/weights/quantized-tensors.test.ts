import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import {
  type FloatTensor,
  type IntegerTensor,
  writeSafetensors,
} from "../testing/safetensors-writer.ts"
import { decodeRow, matrixOf } from "./matrix.ts"
import { openSafetensorsFolder } from "./safetensors-folder.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-quantized-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const levels: IntegerTensor = {
  name: "a",
  shape: [4, 2],
  values: Int8Array.of(127, -128, 1, 2, -3, 4, 0, 5),
}
const scales = (values: readonly number[], name = "a_scale"): FloatTensor => ({
  name,
  shape: [values.length, 1],
  values: Float32Array.from(values),
})
const folderOf = (tensors: readonly (FloatTensor | IntegerTensor)[]) => {
  const folder = mkdtempSync(join(root, "model-"))
  writeFileSync(join(folder, "model.safetensors"), writeSafetensors(tensors))
  return folder
}
const rowsIn = (folder: string): readonly (readonly number[])[] => {
  const source = openSafetensorsFolder(folder)
  try {
    const matrix = matrixOf(source, "a", { rows: 4, columns: 2 })
    return Array.from({ length: 4 }, (_, row) => {
      const values = new Float32Array(2)
      decodeRow(matrix, row, values)
      return [...values]
    })
  } finally {
    source.close()
  }
}

test("each row of integers is multiplied with its scale", () => {
  expect(rowsIn(folderOf([levels, scales([1, 0.5, 2, -1])]))).toEqual([
    [127, -128],
    [0.5, 1],
    [-6, 8],
    [-0, -5],
  ])
})

test("a scale may stand for several rows, as in a convolution whose kernel has rows", () => {
  expect(rowsIn(folderOf([levels, scales([1, 2])]))).toEqual([
    [127, -128],
    [1, 2],
    [-6, 8],
    [0, 10],
  ])
})

test("scales are no tensors of their own, unless their tensor is no integers", () => {
  const float = { ...scales([1, 2, 3, 4, 5, 6, 7, 8], "b"), shape: [4, 2] }
  const source = openSafetensorsFolder(
    folderOf([levels, scales([1, 2]), float, scales([1], "b_scale")]),
  )
  expect([...source.names()].sort()).toEqual(["a", "b", "b_scale"])
  expect([source.has("a"), source.has("a_scale"), source.has("b_scale")]).toEqual([
    true,
    false,
    true,
  ])
  source.close()
})

describe("refuses, by file and tensor", () => {
  test.each([
    ["too few scales", [levels, scales([1, 2, 3])], /'a' of 4 rows has 3 scales/],
    ["a scale that is no number", [levels, scales([1, Number.NaN])], /'a_scale'.*not a finite/],
    ["zero points", [levels, scales([1, 2]), scales([0], "a_zero_point")], /'a' has zero points/],
  ])("%s", (_, tensors, reason) => {
    const folder = folderOf(tensors)
    expect(() => openSafetensorsFolder(folder)).toThrow(reason)
    expect(() => openSafetensorsFolder(folder)).toThrow(folder)
  })

  test("integers without scales, when they are read", () => {
    expect(() => rowsIn(folderOf([levels]))).toThrow(/'a' has the type I8/)
  })
})
