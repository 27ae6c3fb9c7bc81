import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, describe, expect, test } from "vitest"
import { type GgufContent, u32, u64, writeGguf } from "../testing/gguf-writer.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"
import { BytesMissing } from "./byte-cursor.ts"
import { openGguf } from "./gguf-file.ts"
import { parseGgufHeader } from "./gguf-header.ts"
import { vectorOf } from "./matrix.ts"
import { Damaged, ModelFileError } from "./model-file-error.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-gguf-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let files = 0
const stored = (bytes: Uint8Array): string => {
  const path = join(root, `${files++}.gguf`)
  writeFileSync(path, bytes)
  return path
}

const small: GgufContent = {
  metadata: {
    "general.architecture": "llama",
    flag: true,
    half: { f32: 0.5 },
    words: ["a", "b"],
    ids: [1, 2, 3],
  },
  tensors: [
    {
      name: "one",
      dimensions: [4],
      type: 0,
      bytes: new Uint8Array(Float32Array.of(1, -2, 3.5, 0).buffer),
    },
    { name: "two", dimensions: [32, 2], type: 8, bytes: new Uint8Array(68) },
  ],
}
const good = writeGguf(small)

test("reads back what was written", () => {
  const file = openGguf(stored(good))
  expect(Object.fromEntries(file.header.metadata)).toEqual({
    "general.architecture": "llama",
    flag: true,
    half: 0.5,
    words: ["a", "b"],
    ids: [1, 2, 3],
  })
  expect(file.tensor("two")).toMatchObject({ columns: 32, rows: 2, bytes: 68 })
  expect([...vectorOf(file, "one", 4)]).toEqual([1, -2, 3.5, 0])
  file.close()
})

const reasonOf = (bytes: Uint8Array): string => {
  const path = stored(bytes)
  try {
    openGguf(path).close()
  } catch (cause) {
    expect(cause).toBeInstanceOf(ModelFileError)
    expect((cause as Error).message.startsWith(`${path}: `)).toBe(true)
    return (cause as ModelFileError).reason
  }
  return "nothing"
}

const withTensor = (part: Partial<GgufContent["tensors"][number]>) =>
  writeGguf({ ...small, tensors: [{ ...small.tensors[0]!, ...part }] })

/** A file whose one metadata value `k` is an array; `rest` begins with the type of its items. */
const withArray = (rest: readonly Buffer[]) =>
  Buffer.concat([
    Buffer.from("GGUF"),
    u32(3),
    u64(0),
    u64(1),
    u64(1),
    Buffer.from("k"),
    u32(9),
    ...rest,
  ])

test("arrays in arrays, as the format allows", () => {
  const words = [u32(4), u64(2), u32(7), u32(8)]
  const header = withArray([u32(9), u64(2), ...words, ...words])
  expect(parseGgufHeader(header, header.length).metadata.get("k")).toEqual([
    [7, 8],
    [7, 8],
  ])
})

describe("refuses, naming the file and the reason", () => {
  const cases: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ["an empty file", new Uint8Array(), /cut/],
    ["another format", Buffer.from("PK\u0003\u0004 and more"), /not a GGUF file/],
    [
      "an unknown version",
      Buffer.concat([Buffer.from("GGUF"), u32(9), u64(0), u64(0)]),
      /version 9/,
    ],
    [
      "numbers in the other order of bytes",
      Buffer.concat([Buffer.from("GGUF"), Buffer.from([0, 0, 0, 3]), u64(0), u64(0)]),
      /big-endian/,
    ],
    [
      "arrays in arrays without end",
      withArray(Array.from({ length: 1000 }, () => [u32(9), u64(1)]).flat()),
      /'k' holds arrays in arrays/,
    ],
    [
      "absurd counts",
      Buffer.concat([Buffer.from("GGUF"), u32(3), u64(2n ** 60n), u64(1)]),
      /claims/,
    ],
    [
      "a text longer than any",
      Buffer.concat([Buffer.from("GGUF"), u32(3), u64(0), u64(1), u64(2n ** 62n)]),
      /claims a length/,
    ],
    [
      "an unknown value type",
      Buffer.concat([
        Buffer.from("GGUF"),
        u32(3),
        u64(0),
        u64(1),
        u64(1),
        Buffer.from("k"),
        u32(77),
      ]),
      /unknown value type 77/,
    ],
    ["a type of tensor it can't read", withTensor({ type: 16 }), /'one' has the type IQ2_XXS/],
    ["an impossible shape", withTensor({ dimensions: [2 ** 50, 2 ** 50] }), /impossible shape/],
    ["rows that are no whole blocks", withTensor({ type: 8 }), /not a multiple of 32/],
    [
      "a tensor twice",
      writeGguf({ ...small, tensors: [small.tensors[0]!, small.tensors[0]!] }),
      /twice/,
    ],
    ["a cut header", good.subarray(0, 60), /cut/],
    ["cut weights", good.subarray(0, good.length - 64), /cut: the tensor 'two'/],
  ]
  test.each(cases)("%s", (_, bytes, reason) => expect(reasonOf(bytes)).toMatch(reason))

  test("a missing tensor, a wrong shape and a value that is not a number", () => {
    const poisoned = writeGguf({
      ...small,
      tensors: [
        {
          ...small.tensors[0]!,
          bytes: new Uint8Array(Float32Array.of(1, Number.NaN, 0, 0).buffer),
        },
      ],
    })
    const file = openGguf(stored(poisoned))
    const reading = (name: string, length: number) => () =>
      file.explain(() => vectorOf(file, name, length))
    expect(reading("three", 4)).toThrow(/'three' is missing/)
    expect(reading("one", 5)).toThrow(/asks for 1 x 5/)
    expect(reading("one", 4)).toThrow(/not a finite number/)
    file.close()
  })
})

test("no damage makes it fail in another way, read outside the file, or take long", () => {
  const whole = writeGguf(tinyLlama())
  const header = whole.subarray(0, 12_000)
  const damage = fc.array(fc.tuple(fc.nat(header.length - 1), fc.nat(255)), {
    minLength: 1,
    maxLength: 8,
  })
  fc.assert(
    fc.property(damage, fc.nat(header.length), (changes, length) => {
      const bytes = Buffer.from(header)
      for (const [at, value] of changes) bytes[at] = value
      try {
        parseGgufHeader(bytes.subarray(0, length), whole.length)
      } catch (cause) {
        expect(cause instanceof Damaged || cause instanceof BytesMissing).toBe(true)
      }
    }),
    { numRuns: 500 },
  )
})
