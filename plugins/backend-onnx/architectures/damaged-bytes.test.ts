import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { writeGguf } from "../testing/gguf-writer.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import { openModelSource } from "./model-source.ts"
import { refusedFiles } from "./testing/refused-files.ts"

const { copied, open, root } = refusedFiles()

const content = tinyLlama()
describe("whatever bytes change or are missing, opening fails as it should or works, soon and without much memory", () => {
  const damage = (size: number) =>
    fc.tuple(
      fc.array(fc.tuple(fc.nat(size - 1), fc.nat(255)), { maxLength: 12 }),
      fc.option(fc.nat(size)),
    )
  const opens = (path: string): void => {
    const before = process.memoryUsage()
    const startedMs = performance.now()
    try {
      openModelSource(path).close()
    } catch (cause) {
      expect(cause).toBeInstanceOf(ModelFileError)
    }
    const after = process.memoryUsage()
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(64 * 2 ** 20)
    expect(after.heapUsed - before.heapUsed).toBeLessThan(128 * 2 ** 20)
    expect(performance.now() - startedMs).toBeLessThan(2_000)
  }
  const damaged = (
    whole: Buffer,
    [changes, length]: readonly [readonly (readonly [number, number])[], number | null],
  ): Buffer => {
    const bytes = Buffer.from(whole)
    for (const [at, value] of changes) bytes[at] = value
    return bytes.subarray(0, length ?? bytes.length)
  }

  test("GGUF", () => {
    const whole = writeGguf(content)
    const path = join(root, "fuzzed.gguf")
    // most of what can break is in the first kilobytes
    const places = fc.oneof(
      { weight: 4, arbitrary: damage(12_000) },
      { weight: 1, arbitrary: damage(whole.length) },
    )
    fc.assert(
      fc.property(places, (what) => {
        writeFileSync(path, damaged(whole, what))
        opens(path)
      }),
      { numRuns: runs(300) },
    )
  })

  test.each(["model.safetensors", "tokenizer.json", "config.json", "tokenizer_config.json"])(
    "%s of a folder",
    (file) => {
      const folder = copied("qwen2", () => {})
      const whole = readFileSync(join(folder, file))
      const places = fc.oneof(
        { weight: 4, arbitrary: damage(Math.min(3_000, whole.length)) },
        { weight: 1, arbitrary: damage(whole.length) },
      )
      fc.assert(
        fc.property(places, (what) => {
          writeFileSync(join(folder, file), damaged(whole, what))
          opens(folder)
        }),
        { numRuns: runs(100) },
      )
    },
  )

  test("as far as the graph and its session: never anything else than a refusal", async () => {
    const whole = writeGguf(content)
    const path = join(root, "fuzzed-whole.gguf")
    await fc.assert(
      fc.asyncProperty(damage(whole.length), async (what) => {
        writeFileSync(path, damaged(whole, what))
        const opened = await open(path).catch((cause: unknown) => cause)
        if (opened instanceof Error) expect(opened).toBeInstanceOf(ModelFileError)
        else await (opened as Awaited<ReturnType<typeof open>>).session.close()
      }),
      { numRuns: runs(25) },
    )
  })
})
