import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { withAdapterFile } from "../architectures/adapter-file.ts"
import { openModelSource, readModelHeader } from "../architectures/model-source.ts"
import { type GgufContent, splitGguf, writeGguf } from "../testing/gguf-writer.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"
import { mmprojConfig } from "../vision/mmproj-file.ts"
import { openGgufModel, realModelPath } from "./gguf-parts.ts"
import { KnownContents } from "./known-contents.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-gguf-parts-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const content = tinyLlama()
const whole = join(root, "whole.gguf")
writeFileSync(whole, writeGguf(content))

let folders = 0
/** Three parts in a folder; `change` may alter the content of each. */
const parts = (change = (part: GgufContent, _: number) => part) => {
  const folder = join(root, `${folders++}`)
  mkdirSync(folder)
  const nameOf = (part: number) => join(folder, `tiny-0000${part}-of-00003.gguf`)
  for (const [at, part] of splitGguf(content, 3).entries())
    writeFileSync(nameOf(at + 1), writeGguf(change(part, at + 1)))
  return { folder, nameOf }
}
const changing =
  (wanted: number, metadata: GgufContent["metadata"]) => (part: GgufContent, number: number) =>
    number === wanted ? { ...part, metadata: { ...part.metadata, ...metadata } } : part

describe("three parts", () => {
  const { folder, nameOf } = parts()

  test("hold the tensors of the file in one piece", () => {
    const [one, split] = [openGgufModel(whole), openGgufModel(nameOf(1))]
    expect([...split.names()].sort()).toEqual([...one.names()].sort())
    for (const name of one.names()) {
      const [wanted, entry] = [one.tensor(name), split.tensor(name)]
      expect(split.rows(entry, 0, entry.rows).equals(one.rows(wanted, 0, wanted.rows))).toBe(true)
    }
    one.close()
    split.close()
  })

  test.each([
    ["the first one's path", nameOf(1)],
    ["their folder's", folder],
  ])("are one model by %s", (_, path) => {
    expect(readModelHeader(path)).toEqual({
      ...readModelHeader(whole),
      typeOf: expect.any(Function),
    })
    const source = openModelSource(path)
    expect(source.config).toEqual(readModelHeader(whole).config)
    const contents = source.contents(new KnownContents(join(root, "known")), () => {})
    expect(contents).toHaveLength(3)
    source.close()
  })
})

test("a folder with one GGUF file is that file", () => {
  const folder = join(root, "single")
  mkdirSync(folder)
  writeFileSync(join(folder, "x.gguf"), writeGguf(content))
  expect(readModelHeader(folder).config).toEqual(readModelHeader(whole).config)
})

test("a folder with one GGUF file is it, whatever is beside it", () => {
  const folder = join(root, "beside")
  mkdirSync(join(folder, "old.gguf"), { recursive: true })
  writeFileSync(join(folder, "x.gguf"), writeGguf(content))
  for (const name of ["config.json", "._x.gguf", "mmproj-x.gguf"])
    writeFileSync(join(folder, name), "{}")
  expect(readModelHeader(folder).config).toEqual(readModelHeader(whole).config)
})

test("parts are found by their names where they are links, as in a cache of the hub", () => {
  const { folder, nameOf } = parts()
  const blobs = join(root, "blobs")
  mkdirSync(blobs)
  for (const part of [1, 2, 3]) {
    renameSync(nameOf(part), join(blobs, `blob${part}`))
    symlinkSync(join(blobs, `blob${part}`), nameOf(part))
  }
  symlinkSync(folder, join(root, "snapshot"))
  const path = realModelPath(nameOf(1).replace(folder, join(root, "snapshot")))
  expect(path).toBe(nameOf(1))
  expect(readModelHeader(path).config).toEqual(readModelHeader(whole).config)
})

test("a merged file may say that it has no parts, and other tensors than before", () => {
  const path = join(root, "merged.gguf")
  const left = { "split.count": 0, "split.no": 0, "split.tensors.count": 99 }
  writeFileSync(path, writeGguf({ ...content, metadata: { ...content.metadata, ...left } }))
  expect(readModelHeader(path).config).toEqual(readModelHeader(whole).config)
})

test.each([
  ["an adapter", (path: string) => withAdapterFile(path, readModelHeader(whole).config, () => {})],
  ["a vision tower", mmprojConfig],
])("%s in parts is refused", (_, open) => {
  expect(() => open(parts().nameOf(1))).toThrow(
    /it is one of 3 parts\. Name one file: join them with llama\.cpp's/,
  )
})

test("of a folder with several GGUF files one must be named", () => {
  const { folder } = parts()
  writeFileSync(join(folder, "another.gguf"), writeGguf(content))
  expect(() => openModelSource(folder)).toThrow(
    /has 2 GGUF files: another\.gguf, tiny-00001-of-00003\.gguf\. Name one of them/,
  )
})

describe("refused are parts", () => {
  const refusal = (path: string): string => {
    try {
      openModelSource(path).close()
      return "opened"
    } catch (cause) {
      return (cause as Error).message
    }
  }

  test("one of which is not there", () => {
    const { nameOf } = parts()
    unlinkSync(nameOf(2))
    expect(refusal(nameOf(1))).toMatch(
      /part 1 of 3, and tiny-00002-of-00003\.gguf is not beside it\. Put all parts/,
    )
  })

  test("named by another than the first", () => {
    expect(refusal(parts().nameOf(3))).toMatch(
      /it is part 3 of 3\. Name the first part, tiny-00001-of-00003\.gguf/,
    )
  })

  test("of which the first one is not there", () => {
    const { folder, nameOf } = parts()
    unlinkSync(nameOf(1))
    unlinkSync(nameOf(2))
    expect(refusal(folder)).toMatch(
      /00003-of-00003\.gguf: it is part 3 of 3, and tiny-00001-of-00003\.gguf is not beside it/,
    )
  })

  test("in the place of another", () => {
    const { nameOf } = parts(changing(2, { "split.no": 2 }))
    expect(refusal(nameOf(1))).toMatch(/00002-of-00003\.gguf: it is not part 2 of 3/)
  })

  test("with fewer tensors than the first one says", () => {
    const { nameOf } = parts(changing(1, { "split.tensors.count": 99 }))
    expect(refusal(nameOf(1))).toMatch(/its parts have \d+ tensors, not the 99/)
  })

  test("with the same tensor twice", () => {
    const { nameOf } = parts((part, number) =>
      number === 3 ? { ...part, tensors: [...part.tensors, content.tensors[0]!] } : part,
    )
    expect(refusal(nameOf(1))).toMatch(/has the tensor '[^']+', which another file has too/)
  })

  test("whose number of tensors is a text", () => {
    const { nameOf } = parts(changing(1, { "split.tensors.count": "all" }))
    expect(refusal(nameOf(1))).toMatch(/00001-of-00003\.gguf: 'split\.tensors\.count' .* number/)
  })

  test("whose number is a text", () => {
    const { nameOf } = parts(changing(1, { "split.count": "three" }))
    expect(refusal(nameOf(1))).toMatch(/00001-of-00003\.gguf: 'split\.count' .* number/)
  })
})
