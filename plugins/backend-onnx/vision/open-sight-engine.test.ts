import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import type { Picture } from "../architectures/image-preprocessing.ts"
import type { EmbedJobEvent } from "../encoding/embed-job.ts"
import decodeTilesJob from "../images/decode-tiles-job.ts"
import { expectedTower, relativeError, towerFolder } from "../testing/fixtures.ts"
import { mmprojGguf, writtenIn } from "../testing/mmproj-of-folder.ts"
import { writeSafetensors } from "../testing/safetensors-writer.ts"
import { drawnPng, expectedSight, sightedFolder, sightedModels } from "../testing/sighted.ts"
import type { RunningJob } from "../worker/scheduler.ts"
import { openSightEngine } from "./open-sight-engine.ts"
import { sightConfig, type TiledSight } from "./sight-config.ts"

const graphs = mkdtempSync(join(tmpdir(), "rakit-sight-"))
afterAll(() => rmSync(graphs, { recursive: true, force: true }))

const open = (name: string, precision: "fp32" | "int8" = "fp32", path = sightedFolder(name)) =>
  openSightEngine(
    {
      ...{ kind: "sight", path, graphs, precision, threads: 1, slots: 1 },
      ...{ kvBytes: 0, prefixCacheBytes: 0, speculation: false },
    },
    () => {},
  )
type ExpectedImage = ReturnType<typeof expectedSight>["images"][number]
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

/** How far what an engine makes of the tiles is from what transformers makes of them. */
const errorOf = async (engine: SightEngine, image: ExpectedImage) => {
  const { tiles, embedded: wanted } = image
  const { preprocessing, width } = engine.info
  const { resize } = preprocessing
  const size =
    resize.mode === "squares"
      ? { width: image.columns * resize.side, height: image.rows * resize.side }
      : preprocessing
  const found = await embedded(
    engine,
    tiles.map((pixels) => ({ pixels, width: size.width, height: size.height })),
  )
  const rows = found.flatMap((all) =>
    Array.from({ length: all.length / width }, (_, i) => all.subarray(i * width, (i + 1) * width)),
  )
  expect(rows).toHaveLength(wanted.length)
  return relativeError(
    rows,
    wanted.map((row) => Float32Array.from(row)),
  )
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
      for (const image of images)
        expect(await errorOf(engine, image)).toBeLessThan(precision === "fp32" ? 1e-4 : 0.05)
      await engine.close()
    },
  )
})

/**
 * An EfficientNet-Lite whose mean goes through `projection`, as a LLaVA: behind its features, which
 * are not below 0, an identity with ReLU and the same projection.
 */
const convolvedFolder = (): string => {
  const from = towerFolder("efficientnet-lite")
  const folder = mkdtempSync(join(graphs, "convolved-"))
  cpSync(join(from, "preprocessor_config.json"), join(folder, "preprocessor_config.json"))
  const tower: unknown = JSON.parse(readFileSync(join(from, "config.json"), "utf8"))
  const json = { model_type: "llava", projector_hidden_act: "relu", vision_config: tower }
  writeFileSync(join(folder, "config.json"), JSON.stringify(json))
  const bytes = readFileSync(join(from, "model.safetensors"))
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + Number(bytes.readBigUInt64LE()))) as {
    readonly [name: string]: { readonly shape: number[]; readonly data_offsets: [number, number] }
  }
  const data = bytes.subarray(8 + Number(bytes.readBigUInt64LE()))
  const tensors = Object.entries(header).map(([name, { shape, data_offsets }]) => {
    const own = name.replace("projection.", "multi_modal_projector.linear_2.")
    const values = new Float32Array(Uint8Array.from(data.subarray(...data_offsets)).buffer)
    return { name: own === name ? `vision_tower.${name}` : own, shape, values }
  })
  const identity = Float32Array.from({ length: 1600 }, (_, i) => Number(i % 41 === 0))
  const first = "multi_modal_projector.linear_1"
  tensors.push({ name: `${first}.weight`, shape: [40, 40], values: identity })
  tensors.push({ name: `${first}.bias`, shape: [40], values: new Float32Array(40) })
  writeFileSync(join(folder, "model.safetensors"), writeSafetensors(tensors))
  return folder
}

describe("a tower of convolutions", () => {
  it("gives a row for each square, whose mean is what the published network says", async () => {
    const engine = await open("efficientnet-lite", "fp32", convolvedFolder())
    expect(engine.info).toMatchObject({ family: "llava", tokens: 49, width: 24 })
    const { pixels, vectors } = expectedTower("efficientnet-lite")
    const rows = await embedded(
      engine,
      pixels.map((bytes) => ({ pixels: bytes, width: 50, height: 50 })),
    )
    const means = rows.map((all) => {
      const mean = Float32Array.from({ length: 24 }, (_, at) => {
        let sum = 0
        for (let row = 0; row < 49; row++) sum += all[row * 24 + at]!
        return sum / 49
      })
      const norm = Math.hypot(...mean)
      return mean.map((value) => value / norm)
    })
    const wanted = vectors.map((vector) => Float32Array.from(vector))
    expect(relativeError(means, wanted)).toBeLessThan(1e-4)
    await engine.close()
  })
})

describe("a tower in a GGUF file", () => {
  it.each([
    ["idefics3", false],
    ["llava-clip", true],
    ["llava-clip", false],
  ] as const)(
    "of %s reads images as transformers does (first converter: %s)",
    async (name, isOld) => {
      const path = writtenIn(
        graphs,
        `${name}-${isOld}.gguf`,
        mmprojGguf(sightedFolder(name), isOld),
      )
      const engine = await open(name, "fp32", path)
      const { preprocessing, tiling, family, tokens, width } = sightConfig(
        sightedFolder(name),
      ) as TiledSight
      expect(engine.info).toMatchObject({
        family,
        tokens,
        width,
        preprocessing: { resize: preprocessing.resize },
      })
      expect(engine.info.tiling).toEqual(tiling)
      expect(engine.info.imageToken).toBeUndefined()
      for (const image of expectedSight(name).images)
        expect(await errorOf(engine, image)).toBeLessThan(1e-4)
      await engine.close()
    },
  )

  it.each([
    ["a projector", { "clip.projector_type": "ldp" }, /its projector is a 'ldp'/],
    ["several sizes", { "clip.vision.image_grid_pinpoints": [32, 64] }, /image_grid_pinpoints/],
    ["a decoder", { "general.architecture": "llama" }, /no tower that reads images, but a 'llama'/],
    ["heads", { "clip.vision.attention.head_count": 5 }, /5 heads don't fit a width of 32/],
    ["layers", { "clip.vision.block_count": 9 }, /blk\.2.* is missing/],
    ["an activation", { "clip.use_silu": true }, /its activation is 'silu'/],
  ])("is refused by the name of its file: %s", async (what, metadata, message) => {
    const bytes = mmprojGguf(sightedFolder("llava-clip"), true, metadata)
    const path = writtenIn(graphs, `refused ${what}.gguf`, bytes)
    const failure = open("llava-clip", "fp32", path)
    await expect(failure).rejects.toThrow(message)
    await expect(failure).rejects.toThrow(path)
  })

  it("that is cut is refused by the name of its file", async () => {
    const bytes = mmprojGguf(sightedFolder("llava-clip"), true)
    for (const length of [3, 40, 2_000, bytes.length - 4_096]) {
      const path = writtenIn(graphs, `cut at ${length}.gguf`, bytes.subarray(0, length))
      await expect(open("llava-clip", "fp32", path)).rejects.toThrow(path)
    }
  })
})
