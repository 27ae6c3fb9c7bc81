import { cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { EmbedJobEvent } from "../encoding/embed-job.ts"
import { expectedTower, towerFolder } from "../testing/fixtures.ts"
import type { RunningJob } from "../worker/scheduler.ts"
import { openVisionEngine } from "./open-vision-engine.ts"

const fresh = () => mkdtempSync(join(tmpdir(), "vision-engine-"))
const graphs = fresh()

const open = (path: string) =>
  openVisionEngine(
    {
      kind: "vision",
      path,
      graphs,
      precision: "fp32",
      threads: 1,
      slots: 1,
      kvBytes: 0,
      prefixCacheBytes: 0,
      speculation: false,
    },
    () => {},
  )
type VisionEngine = Awaited<ReturnType<typeof open>>

/** Runs requests together until all have ended; the vectors of each. */
const embed = async (engine: VisionEngine, requests: readonly (readonly Uint8Array[])[]) => {
  const vectors = requests.map(() => [] as Float32Array[])
  const steps: number[] = []
  let running = requests.map((images, id): RunningJob<ReturnType<VisionEngine["start"]>> => {
    const emit = (event: EmbedJobEvent) => {
      if (event.type === "vector") vectors[id]![event.index] = event.vector
    }
    return { id, account: "a", priority: "realtime", job: engine.start({ images }, emit) }
  })
  while (running.length) {
    const before = vectors.flat().length
    const ended = await engine.runner.step(running, ([first]) => first!)
    for (const { cause } of ended) if (cause) throw cause
    steps.push(vectors.flat().length - before)
    running = running.filter((job) => !ended.some(({ of }) => of === job))
  }
  return { vectors, steps }
}

/** The fixture's folder with changes to its files. */
const changed = (files: Readonly<Record<string, Readonly<Record<string, unknown>>>>) => {
  const folder = fresh()
  cpSync(towerFolder("efficientnet-lite"), folder, { recursive: true })
  for (const [name, changes] of Object.entries(files)) {
    const json = JSON.parse(readFileSync(join(folder, name), "utf8")) as object
    writeFileSync(join(folder, name), JSON.stringify({ ...json, ...changes }))
  }
  return folder
}

describe("an engine of a vision tower", () => {
  const { pixels } = expectedTower("efficientnet-lite")

  test("gives a picture the same vector alone and beside others, eight at a time", async () => {
    const engine = await open(towerFolder("efficientnet-lite"))
    expect(engine.info).toMatchObject({ name: "tiny-efficientnet", width: 24, map: "r1" })
    const many = Array.from({ length: 10 }, (_, i) => pixels[i % 3]!)
    const { vectors, steps } = await embed(engine, [many, [pixels[2]!]])
    expect(steps).toEqual([8, 3])
    const alone = await Promise.all(pixels.map((picture) => embed(engine, [[picture]])))
    for (const [i, vector] of [...vectors[0]!, vectors[1]![0]!].entries()) {
      const wanted = alone[i === 10 ? 2 : i % 3]!.vectors[0]![0]!
      expect(Math.max(...vector.map((value, at) => Math.abs(value - wanted[at]!)))).toBeLessThan(
        1e-5,
      )
    }
    await engine.close()
  })

  test("has the text model's map, where prefixes of its vectors are vectors", async () => {
    const engine = await open(changed({ "config.json": { matryoshka_dimensions: [8, 24] } }))
    expect(engine.info.map).toBe("m1")
    await engine.close()
  })

  test.each([
    ["another family", { "config.json": { model_type: "resnet" } }, /'resnet' is no vision tower/],
    ["a head of another width", { "config.json": { head_channels: 41 } }, /'head.weight' is 40 x/],
    ["no blocks", { "config.json": { blocks: [] } }, /'blocks' is not an array/],
    ["pictures of another size", { "config.json": { image_size: 64 } }, /50 x 50 pixels, .* 64 x/],
    ["no fixed size", { "preprocessor_config.json": { do_pad: false } }, /'do_pad' is off/],
    ["a zero to divide by", { "preprocessor_config.json": { image_std: [1, 0, 1] } }, /has a zero/],
    ["an unknown filter", { "preprocessor_config.json": { resample: 5 } }, /'resample' is 5/],
  ])("refuses %s", async (_, files, message) => {
    await expect(open(changed(files))).rejects.toThrow(message)
  })

  test("refuses blocks that don't fit together, and tensors of other blocks", async () => {
    const { blocks } = JSON.parse(
      readFileSync(join(towerFolder("efficientnet-lite"), "config.json"), "utf8"),
    ) as { readonly blocks: readonly object[] }
    const without = (from: number, to?: number) =>
      open(changed({ "config.json": { blocks: blocks.slice(from, to) } }))
    await expect(without(1)).rejects.toThrow(/'blocks\[0\]' reads 8 channels, and gets 32/)
    await expect(without(0, -1)).rejects.toThrow(
      /the tensor 'blocks.6.*', which is none of its own/,
    )
  })
})
