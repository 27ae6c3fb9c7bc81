import { readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { writeGguf } from "./testing/gguf-writer.ts"
import { openBackend } from "./testing/open-backend.ts"
import { tinyLlama, tinyLlamaFile } from "./testing/tiny-llama.ts"

const fixture = openBackend()
beforeAll(async () => {
  const sound = join(fixture.dataDir, "tiny.gguf")
  writeFileSync(sound, tinyLlamaFile(5))
  await fixture.open("chat", sound)
})
afterAll(() => fixture.close())

describe("a model that can't be opened", () => {
  const content = tinyLlama()
  const cases: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ["cut", tinyLlamaFile().subarray(0, 60_000), /it is cut/],
    ["not a model", Buffer.from("hello"), /not a GGUF file|cut/],
    [
      "of another architecture",
      writeGguf({ ...content, metadata: { ...content.metadata, "general.architecture": "mamba" } }),
      /architecture is 'mamba'/,
    ],
    [
      "without a tensor",
      writeGguf({
        ...content,
        tensors: content.tensors.filter((t) => t.name !== "blk.1.ffn_up.weight"),
      }),
      /'blk.1.ffn_up.weight' is missing/,
    ],
    [
      "with a tensor of another shape",
      writeGguf({ ...content, metadata: { ...content.metadata, "llama.feed_forward_length": 95 } }),
      /asks for 95 x 64/,
    ],
    [
      "with an unknown tokenizer",
      writeGguf({ ...content, metadata: { ...content.metadata, "tokenizer.ggml.pre": "klingon" } }),
      /pre-tokenizer is 'klingon'/,
    ],
    [
      "with a broken template",
      writeGguf({
        ...content,
        metadata: { ...content.metadata, "tokenizer.chat_template": "{% for %}" },
      }),
      /chat template can't be used/,
    ],
    [
      "with NaN",
      writeGguf({
        ...content,
        tensors: content.tensors.map((t) =>
          t.name === "blk.0.attn_v.weight" ? { ...t, bytes: t.bytes.map(() => 255) } : t,
        ),
      }),
      /finite number/,
    ],
  ]
  test.each(cases)("%s, says so and names the file", async (name, bytes, reason) => {
    const broken = join(fixture.dataDir, `${name}.gguf`)
    writeFileSync(broken, bytes)
    const error = await fixture.failure("chat", broken)
    expect(error.code).toBe("backend_error")
    expect(error.message).toMatch(reason)
    expect(error.message).toContain(broken)
    expect(readdirSync(join(fixture.dataDir, "graphs"))).toHaveLength(1)
  })

  test("missing", async () => {
    const error = await fixture.failure("chat", join(fixture.dataDir, "nothing"))
    expect(error.message).toMatch(/nothing: can't be read/)
  })
})

test("options are checked before anything starts", () => {
  const { check } = fixture.backend
  expect(check("chat", {})).toBeUndefined()
  expect(check("chat", undefined)).toBeUndefined()
  expect(check("rerank", { precision: "fp32", instruction: "judge" })).toBeUndefined()
  expect(check("chat", { precision: "int3" })).toMatch(/options.precision/)
  expect(check("chat", { precison: "int8" })).toMatch(/precison/)
  expect(check("image", {})).toBeUndefined()
  expect(check("image", { tileSize: 16 })).toMatch(/options.tileSize/)
})
