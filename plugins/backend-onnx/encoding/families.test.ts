import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { changedEncoder } from "../testing/changed-encoder.ts"
import { encoderFolder } from "../testing/fixtures.ts"
import {
  cosine,
  expectedEncoder,
  openEncoder,
  outputsOf,
  unmapped,
} from "../testing/open-encoder.ts"
import { folderEncoder } from "./families.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-families-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const truncated = (truncate_dim: unknown, config: object = {}) =>
  changedEncoder(root, encoderFolder("bert"), {
    "config_sentence_transformers.json": { truncate_dim },
    "config.json": config,
  })

describe("truncate_dim", () => {
  const { texts } = expectedEncoder("bert")

  test("keeps the first numbers of the model's vectors, in a space of their own", async () => {
    const engines = [
      await openEncoder(truncated(8), join(root, "graphs")),
      await openEncoder(encoderFolder("bert"), join(root, "graphs")),
    ] as const
    expect(engines[0].info.width).toBe(8)
    expect(engines[0].info.digest).not.toBe(engines[1].info.digest)
    const vectors = await outputsOf(
      engines[0],
      texts!.map(({ ids }) => Int32Array.from(ids)),
    )
    for (const [i, { vector }] of texts!.entries()) {
      expect(cosine(unmapped(vectors[i]!, 8), vector.slice(0, 8))).toBeGreaterThan(1 - 1e-6)
      expect(Math.hypot(...vectors[i]!)).toBeCloseTo(1, 5)
    }
    for (const engine of engines) await engine.close()
  })

  test.each([
    [8, { width: 8, isCut: true }],
    [32, { width: 32, isCut: false }],
    [5000, { width: 32, isCut: false }],
    [null, { width: 32, isCut: false }],
  ])("of %s", (dimensions, head) => {
    expect(folderEncoder(truncated(dimensions)).head).toMatchObject(head)
  })

  test("makes longer vectors than the space's fit it", () => {
    const wide = { hidden_size: 4096, num_attention_heads: 4 }
    expect(() => folderEncoder(truncated(null, wide))).toThrow(/its vectors of 4096 numbers don't/)
    expect(folderEncoder(truncated(1024, wide)).head).toMatchObject({ width: 1024, isCut: true })
    expect(() => folderEncoder(truncated(3000, wide))).toThrow(/its vectors of 3000 numbers don't/)
  })

  test("is refused where it is no number of dimensions", () => {
    expect(() => folderEncoder(truncated(0))).toThrow(
      /config_sentence_transformers.json: 'truncate_dim' is 0/,
    )
  })
})
