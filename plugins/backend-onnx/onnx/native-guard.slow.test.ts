import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { writeGguf } from "../testing/gguf-writer.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-guard-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

// onnxruntime-node 1.30.0 aborts the process (SIGABRT, 134) without the guard; a later version may
// not
test("a process that exits while ONNX Runtime works ends with its own code", async () => {
  const content = tinyLlama()
  const model = join(root, "tiny.gguf")
  writeFileSync(
    model,
    writeGguf({ ...content, metadata: { ...content.metadata, "llama.context_length": 32_768 } }),
  )
  const script = join(import.meta.dirname, "..", "testing", "exit-while-running.mjs")
  const codes = await Promise.all(
    Array.from(
      { length: 3 },
      () =>
        new Promise((resolve) =>
          execFile(process.execPath, [script, model, join(root, "graphs")], (error) =>
            resolve(error?.code ?? error?.signal ?? 0),
          ),
        ),
    ),
  )
  expect(codes).toEqual([3, 3, 3])
})
