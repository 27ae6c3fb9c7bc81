import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import {
  expectedLogits,
  expectedOf,
  fixtureFolder,
  largestGap,
  logitsIn,
  walkerOf,
} from "../testing/fixtures.ts"
import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { findExport } from "./exported-config.ts"
import { openDecoder } from "./open-decoder.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-exported-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const open = (path: string) =>
  openDecoder({ path, graphs: join(root, "graphs"), precision: "int8", threads: 1 }, () => {})

const { ids, chatIds } = expectedOf("llama")
const wanted = expectedLogits("llama")

test("a ready-made export returns the logits of the model that it was made from", async () => {
  const decoder = await open(fixtureFolder("llama-export"))
  expect(decoder.session.shape).toMatchObject({
    layers: 2,
    kvHeads: 2,
    headSize: 8,
    vocabulary: 320,
    contextTokens: 512,
  })
  expect([...decoder.endTokens].sort()).toEqual([0, 2])
  for (const sizes of [ids.map(() => 1), [20], [7, 13]])
    for (const [i, logits] of (await logitsIn(decoder.session, ids, sizes)).entries())
      expect(largestGap(logits, wanted[i]!)).toBeLessThan(2e-4)
  expect(
    (await loadChatTokenizer(decoder.folder).tokenizer.encode("yes", null)).getIds().length,
  ).toBeGreaterThan(0)
  expect(chatIds.every((id) => decoder.bytesOf(id).length > 0 || [1, 2].includes(id))).toBe(true)
  await decoder.session.close()
})

test("rows of different lengths go side by side", async () => {
  const { session } = await open(join(fixtureFolder("llama-export"), "onnx", "model.onnx"))
  const { step } = walkerOf(session, 2, 32)
  await step([ids.slice(0, 6), ids.slice(0, 6)], [true, false])
  const mixed = await step([ids.slice(6, 9), ids.slice(0, 3)])
  for (const [i, at] of [6, 7, 8, 0, 1, 2].entries())
    expect(largestGap(mixed[i]!, wanted[at]!)).toBeLessThan(2e-4)
  await session.close()
})

test.each([
  [{ promptPrecision: "int8-channel" as const }, "has no promptPrecision"],
  [{ adapters: [{ id: "legal", path: "legal.gguf" }] }, "takes no adapters"],
])("a ready-made export refuses what it can't have: %j", async (more, lacks) => {
  const [path, graphs] = [fixtureFolder("llama-export"), join(root, "graphs")]
  await expect(
    openDecoder({ path, graphs, precision: "int8", threads: 1, ...more }, () => {}),
  ).rejects.toThrow(`it is a ready-made graph, which ${lacks}`)
})

test("the precision picks the graph, and any is better than none", () => {
  const folder = join(root, "several")
  cpSync(fixtureFolder("llama-export"), folder, { recursive: true })
  const named = (precision: "int8" | "int4" | "fp32") =>
    findExport(folder, precision)!.graph.split("/").at(-1)
  expect([named("int8"), named("int4"), named("fp32")]).toEqual([
    "model.onnx",
    "model.onnx",
    "model.onnx",
  ])
  cpSync(join(folder, "onnx", "model.onnx"), join(folder, "onnx", "model_quantized.onnx"))
  cpSync(join(folder, "onnx", "model.onnx"), join(folder, "onnx", "model_q4.onnx"))
  expect([named("int8"), named("int4"), named("fp32")]).toEqual([
    "model_quantized.onnx",
    "model_q4.onnx",
    "model.onnx",
  ])
  renameSync(join(folder, "onnx"), join(folder, "graphs"))
  expect(findExport(folder, "int8")).toBeUndefined()
})

test("a folder with both is built where that can be, and else its export runs", async () => {
  const folder = join(root, "both")
  cpSync(fixtureFolder("llama-export"), folder, { recursive: true })
  cpSync(join(fixtureFolder("llama"), "model.safetensors"), join(folder, "model.safetensors"))
  const holdsGraph = async () => {
    const decoder = await open(folder)
    await decoder.session.close()
    return existsSync(join(decoder.folder, "weights.bin"))
  }
  expect(await holdsGraph()).toBe(true)
  const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as object
  writeFileSync(join(folder, "config.json"), JSON.stringify({ ...config, model_type: "mamba" }))
  expect(await holdsGraph()).toBe(false)
})

test("a cut export is refused and named", async () => {
  const folder = join(root, "cut")
  cpSync(fixtureFolder("llama-export"), folder, { recursive: true })
  truncateSync(join(folder, "onnx", "model.onnx"), 100_000)
  await expect(open(folder)).rejects.toThrow(
    /model\.onnx: ONNX Runtime can't open it .*Pull it again/s,
  )
  rmSync(join(folder, "tokenizer.json"))
  cpSync(join(fixtureFolder("llama-export"), "onnx"), join(folder, "onnx"), { recursive: true })
  await expect(open(folder)).rejects.toThrow(/it has no tokenizer.json/)
  expect(existsSync(folder)).toBe(true)
})
