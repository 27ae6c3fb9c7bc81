import { createHash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { tinyLlamaFile } from "../../plugins/backend-onnx/testing/tiny-llama.ts"
import { openGguf } from "../../plugins/backend-onnx/weights/gguf-file.ts"
import { writeRandomGguf } from "./random-gguf.ts"

test("no two matrices of a random model have the same bytes", () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-random-gguf-"))
  const [tokenizer, model] = [join(folder, "tokenizer.gguf"), join(folder, "model.gguf")]
  try {
    writeFileSync(tokenizer, tinyLlamaFile())
    writeRandomGguf(model, "3M", () => "Q4_0", openGguf(tokenizer))
    const file = openGguf(model)
    const matrices = [...file.names()]
      .map((name) => file.tensor(name))
      .filter(({ rows }) => rows > 1)
    const digests = matrices.map((matrix) =>
      createHash("sha256")
        .update(file.rows(matrix, 0, matrix.rows))
        .digest("hex"),
    )
    expect(digests.length).toBe(1 + 4 * 7)
    expect(new Set(digests).size).toBe(digests.length)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
