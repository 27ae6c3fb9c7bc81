import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import type { Picture } from "../architectures/image-preprocessing.ts"
import type { EmbedJobEvent } from "../encoding/embed-job.ts"
import decodeTilesJob from "../images/decode-tiles-job.ts"
import { relativeError } from "../testing/fixtures.ts"
import { drawnPng, expectedSight, sightedFolder, sightedModels } from "../testing/sighted.ts"
import type { RunningJob } from "../worker/scheduler.ts"
import { openSightEngine } from "./open-sight-engine.ts"

const graphs = mkdtempSync(join(tmpdir(), "rakit-sight-"))
afterAll(() => rmSync(graphs, { recursive: true, force: true }))

const open = (name: string, precision: "fp32" | "int8" = "fp32") =>
  openSightEngine(
    {
      ...{ kind: "sight", path: sightedFolder(name), graphs, precision, threads: 1, slots: 1 },
      ...{ kvBytes: 0, prefixCacheBytes: 0, speculation: false },
    },
    () => {},
  )
type SightEngine = Awaited<ReturnType<typeof open>>

const embedded = async (engine: SightEngine, images: readonly Picture[]) => {
  const vectors: Float32Array[] = []
  const emit = (event: EmbedJobEvent) => {
    if (event.type === "vector") vectors[event.index] = event.vector
  }
  const job: RunningJob<ReturnType<SightEngine["start"]>> = {
    ...{ id: 1, account: "a", priority: "realtime" },
    job: engine.start({ images }, emit),
  }
  for (let ended = false; !ended; ) {
    const [end] = await engine.runner.step([job], ([first]) => first!)
    if (end?.cause) throw end.cause
    ended = end !== undefined
  }
  return vectors
}

describe.each(sightedModels)("%s", (name) => {
  const { images } = expectedSight(name)

  it("divides images into the tiles of transformers", async () => {
    const engine = await open(name)
    const { preprocessing, tiling } = engine.info
    for (const { width, height, rows, columns, tiles } of images) {
      const bytes = await drawnPng(width, height)
      const found = await decodeTilesJob({ bytes, preprocessing, ...(tiling && { tiling }) })
      if ("refused" in found) throw new Error(found.refused)
      expect([found.rows, found.columns, found.tiles.length]).toEqual([rows, columns, tiles.length])
      for (const [at, tile] of found.tiles.entries()) {
        const gaps = tile.pixels.map((value, i) => Math.abs(value - tiles[at]![i]!))
        const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
        // PIL filters in one go; libvips first takes means of squares where it shrinks much
        expect([width, at, mean < 2, Math.max(...gaps) < 24]).toEqual([width, at, true, true])
      }
    }
    await engine.close()
  })

  it.each(["fp32", "int8"] as const)(
    "reads them as transformers does, in %s",
    async (precision) => {
      const engine = await open(name, precision)
      const { width: edge } = engine.info.preprocessing
      for (const { tiles, embedded: wanted } of images) {
        const pictures = tiles.map((pixels) => ({ pixels, width: edge, height: edge }))
        const found = await embedded(engine, pictures)
        const rows = found.flatMap((all) =>
          Array.from({ length: engine.info.tokens }, (_, i) =>
            all.subarray(i * engine.info.width, (i + 1) * engine.info.width),
          ),
        )
        expect(rows).toHaveLength(wanted.length)
        const error = relativeError(
          rows,
          wanted.map((row) => Float32Array.from(row)),
        )
        expect(error).toBeLessThan(precision === "fp32" ? 1e-4 : 0.05)
      }
      await engine.close()
    },
  )
})
