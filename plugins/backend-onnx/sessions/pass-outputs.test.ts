import { expect, test } from "vitest"
import { PassOutputs } from "./pass-outputs.ts"

const shape = { layers: 2, kvHeads: 3, headSize: 8, vocabulary: 50 }
const pass = (rows: number, count: number, wanted: number) => ({
  rows,
  count,
  ids: [],
  pastLens: [],
  past: [],
  capacity: 128,
  logitsAt: Array.from({ length: wanted }, (_, i) => i),
})

test.each([
  { halves: true, type: "uint16", dims: [4, 2, 5, 24] },
  { halves: false, type: "float32", dims: [8, 5, 24] },
])("passes of any sizes write to the same memory, in $type", ({ halves, type, dims }) => {
  const outputs = new PassOutputs(shape, halves)
  const large = outputs.of(pass(2, 5, 3))
  expect(large.logits).toMatchObject({ type: "float32", dims: [1, 3, 50] })
  expect(large.new_kv).toMatchObject({ type, dims })
  const small = outputs.of(pass(1, 1, 1))
  expect(small.logits!.data).toHaveLength(50)
  expect(small.new_kv!.data).toHaveLength(96)
  for (const name of ["logits", "new_kv"])
    expect((small[name]!.data as Float32Array).buffer).toBe(
      (large[name]!.data as Float32Array).buffer,
    )
  expect(outputs.of(pass(1, 64, 0)).logits).toBeNull()
})
