import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, describe, expect, test } from "vitest"
import { writeSafetensors } from "../testing/safetensors-writer.ts"
import { vectorOf } from "./matrix.ts"
import { Damaged } from "./model-file-error.ts"
import { openSafetensors, parseSafetensorsHeader } from "./safetensors.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-safetensors-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let files = 0
const stored = (bytes: Uint8Array): string => {
  const path = join(root, `${files++}.safetensors`)
  writeFileSync(path, bytes)
  return path
}
const good = writeSafetensors([
  { name: "a", shape: [2, 3], values: Float32Array.of(1, 2, 3, 4, 5, 6) },
  { name: "b", shape: [2], values: Float32Array.of(-1, 0.5) },
])
const withHeader = (header: string): Buffer => {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, Buffer.from(header), Buffer.alloc(64)])
}

test("reads back what was written", () => {
  const file = openSafetensors(stored(good))
  expect(file.tensor("a")).toMatchObject({ rows: 2, columns: 3 })
  expect([...vectorOf(file, "b", 2)]).toEqual([-1, 0.5])
  file.close()
})

describe("refuses, naming the file and the reason", () => {
  test.each([
    ["a short file", Buffer.from("x"), /too short/],
    ["a length beyond the file", Buffer.alloc(16, 255), /claims a header/],
    ["a header that is not JSON", withHeader("{{"), /not JSON/],
    ["a header that is not an object", withHeader("5"), /not an object/],
    [
      "an entry that is not one",
      withHeader('{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}'),
      /entry of the tensor 'a'/,
    ],
    [
      "bytes of whole numbers that don't fit the shape",
      withHeader('{"a":{"dtype":"I8","shape":[2,4],"data_offsets":[0,4]}}'),
      /has 4 bytes/,
    ],
    [
      "an end before the beginning",
      withHeader('{"a":{"dtype":"X4","shape":[2,4],"data_offsets":[8,0]}}'),
      /has -8 bytes/,
    ],
    [
      "offsets that don't fit the shape",
      withHeader('{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}}'),
      /has 4 bytes/,
    ],
    ["cut weights", good.subarray(0, good.length - 4), /cut: the tensor 'b'/],
  ])("%s", (_, bytes, reason) => {
    const path = stored(bytes)
    expect(() => openSafetensors(path)).toThrow(reason)
    expect(() => openSafetensors(path)).toThrow(path)
  })
})

test("no damage makes it fail in another way", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 6 }),
      fc.nat(good.length),
      (changes, length) => {
        const bytes = Buffer.from(good)
        for (const [at, value] of changes) bytes[at] = value
        const cut = bytes.subarray(0, length)
        try {
          parseSafetensorsHeader(
            (position, count) => Buffer.from(cut.subarray(position, position + count)),
            cut.length,
          )
        } catch (cause) {
          expect(cause).toBeInstanceOf(Damaged)
        }
      },
    ),
    { numRuns: 500 },
  )
})
