import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { openDecoder } from "../sessions/open-decoder.ts"
import { tinyLlamaFile } from "../testing/tiny-llama.ts"
import { cachedFolder } from "./graph-cache.ts"

let root: string
let path: string
let said: string[]
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rakit-cache-"))
  path = join(root, "model.gguf")
  said = []
  writeFileSync(path, tinyLlamaFile(1))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const open = async (precision: "int8" | "int4" | "fp32" = "int8") => {
  const decoder = await openDecoder(
    { path, graphs: join(root, "graphs"), precision, threads: 1 },
    (detail) => said.push(detail),
  )
  await decoder.session.close()
  return decoder.folder
}
const built = () => said.splice(0).some((detail) => detail.startsWith("building"))
const folders = () => readdirSync(join(root, "graphs"))

test("a graph is built once, and says how far it is", async () => {
  const folder = await open()
  expect(said).toEqual(
    expect.arrayContaining([
      "reading weights",
      "reading weights: 100 %",
      "building the graph: 0 %",
      "building the graph: 66 %",
      "loading the graph",
    ]),
  )
  expect(built()).toBe(true)
  expect(await open()).toBe(folder)
  expect(built()).toBe(false)
  expect(statSync(join(root, "graphs")).mode & 0o777).toBe(0o700)
})

test("each precision has its own; a copy elsewhere shares it", async () => {
  const [int8, int4] = [await open("int8"), await open("int4")]
  expect(int8).not.toBe(int4)
  const copy = join(root, "copy.gguf")
  copyFileSync(path, copy)
  path = copy
  said = []
  expect(await open("int8")).toBe(int8)
  expect(built()).toBe(false)
})

test("a changed file is built anew, though its size and time are the same", async () => {
  const folder = await open()
  const { atime, mtime, size } = statSync(path)
  writeFileSync(path, tinyLlamaFile(2))
  utimesSync(path, atime, mtime)
  expect(statSync(path)).toMatchObject({ size, mtime })
  said = []
  expect(await open()).not.toBe(folder)
  expect(built()).toBe(true)
})

describe("a damaged folder is built again, to the same bytes", () => {
  const flip = (file: string) => (folder: string) => {
    const bytes = readFileSync(join(folder, file))
    bytes[bytes.length >> 1]! ^= 1
    writeFileSync(join(folder, file), bytes)
  }
  test.each<readonly [string, (folder: string) => void]>([
    ["a bit of the weights", flip("weights.bin")],
    ["a bit of the graph", flip("model.onnx")],
    ["a bit of the tokenizer", flip("tokenizer.json")],
    ["cut weights", (folder) => truncateSync(join(folder, "weights.bin"), 1000)],
    ["an empty graph", (folder) => writeFileSync(join(folder, "model.onnx"), "")],
    ["a missing file", (folder) => rmSync(join(folder, "chat.json"))],
    ["a missing list of contents", (folder) => rmSync(join(folder, "contents.json"))],
    ["a broken list of contents", (folder) => writeFileSync(join(folder, "contents.json"), "{}")],
  ])("%s", async (_, damage) => {
    const folder = await open()
    const before = readdirSync(folder).map((name) => [
      name,
      readFileSync(join(folder, name)).toString("base64"),
    ])
    damage(folder)
    said = []
    expect(await open()).toBe(folder)
    expect(built()).toBe(true)
    expect(
      readdirSync(folder).map((name) => [
        name,
        readFileSync(join(folder, name)).toString("base64"),
      ]),
    ).toEqual(before)
    expect(folders()).toHaveLength(1)
  })
})

test("what a process that died left half built goes away; what another builds stays", async () => {
  const folder = await open()
  const [dead, aside, alive] = [
    `${folder}.building-999999999-aa`,
    `${folder}.damaged-999999999-aa`,
    `${folder}.building-1-bb`,
  ]
  for (const left of [dead, aside, alive]) mkdirSync(left)
  rmSync(folder, { recursive: true })
  await open()
  expect([dead, aside, alive].map((left) => existsSync(left))).toEqual([false, false, true])
})

test("an earlier process may have had our number, as in containers", async () => {
  const folder = await open()
  const left = `${folder}.building-${process.pid}-aa`
  mkdirSync(left)
  utimesSync(left, 0, 0)
  rmSync(folder, { recursive: true })
  await open()
  expect(existsSync(left)).toBe(false)
})

test("two threads of one process may build the same folder at once, as for two copies of one file", () => {
  const graphs = join(root, "graphs")
  const build = (meanwhile: () => void) =>
    cachedFolder(graphs, "abc", (folder) => {
      writeFileSync(join(folder, "first"), "1")
      meanwhile()
      writeFileSync(join(folder, "second"), "2")
    })
  const ready = build(() => build(() => {}))
  expect(readdirSync(graphs)).toEqual(["abc"])
  expect(readdirSync(ready).sort()).toEqual(["contents.json", "first", "second"])
})

describe("a disk that can't take the graph is named, and nothing half written stays", () => {
  test("full", () => {
    const full = () => {
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" })
    }
    const graphs = join(root, "graphs")
    expect(() => cachedFolder(graphs, "abc", full)).toThrow(
      `${graphs}: a built graph can't be written there (ENOSPC: no space left on device, write). It takes about`,
    )
    expect(readdirSync(graphs)).toEqual([])
  })

  test("a file where the folder should be", async () => {
    writeFileSync(join(root, "graphs"), "")
    await expect(open()).rejects.toThrow(
      `${join(root, "graphs")}: a built graph can't be written there`,
    )
  })
})
