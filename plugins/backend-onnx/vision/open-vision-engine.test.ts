import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import type { Picture } from "../architectures/image-preprocessing.ts"
import type { EmbedJobEvent } from "../encoding/embed-job.ts"
import { expectedTower, processedBy, towerFolder } from "../testing/fixtures.ts"
import { cosine, unmapped } from "../testing/open-encoder.ts"
import type { RunningJob } from "../worker/scheduler.ts"
import { openVisionEngine } from "./open-vision-engine.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-vision-engines-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const fresh = () => mkdtempSync(join(root, "folder-"))
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
const embed = async (engine: VisionEngine, requests: readonly (readonly Picture[])[]) => {
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
const changed = (
  files: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  name = "efficientnet-lite",
) => {
  const folder = fresh()
  cpSync(towerFolder(name), folder, { recursive: true })
  for (const [name, changes] of Object.entries(files)) {
    const json = JSON.parse(readFileSync(join(folder, name), "utf8")) as object
    writeFileSync(join(folder, name), JSON.stringify({ ...json, ...changes }))
  }
  return folder
}

describe("an engine of a vision tower", () => {
  test.each([
    { name: "efficientnet-lite", model: "tiny-efficientnet", width: 24, wanted: [4, 4, 3] },
    { name: "clip", model: "tiny-clip", width: 20, wanted: [8, 3] },
    { name: "siglip", model: "tiny-siglip", width: 32, wanted: [8, 3] },
  ])(
    "gives $name's pictures the same vectors alone and beside others",
    async ({ name, model, width, wanted }) => {
      const engine = await open(towerFolder(name))
      const { width: edge } = engine.info.preprocessing
      const pictures = expectedTower(name).pixels.map(
        (pixels): Picture => ({ pixels, width: edge, height: edge }),
      )
      expect(engine.info).toMatchObject({ name: model, width, map: "r1" })
      const many = Array.from({ length: 10 }, (_, i) => pictures[i % 3]!)
      const { vectors, steps } = await embed(engine, [many, [pictures[2]!]])
      expect(steps).toEqual(wanted)
      const alone = await Promise.all(pictures.map((picture) => embed(engine, [[picture]])))
      for (const [i, vector] of [...vectors[0]!, vectors[1]![0]!].entries()) {
        const own = alone[i === 10 ? 2 : i % 3]!.vectors[0]![0]!
        const gap = Math.max(...vector.map((value, at) => Math.abs(value - own[at]!)))
        expect(gap).toBeLessThan(1e-5)
      }
      await engine.close()
    },
  )

  test("gives SigLIP 2's pictures in their own shapes the vectors of transformers", async () => {
    const engine = await open(towerFolder("siglip2"))
    const processed = processedBy("siglip2")
    const pictures = processed.map(
      ({ size, pixels }): Picture => ({
        width: size![0],
        height: size![1],
        pixels: Buffer.from(pixels, "base64"),
      }),
    )
    const { vectors } = await embed(engine, [pictures, [pictures[1]!]])
    for (const [i, { vector }] of processed.entries())
      expect(cosine(unmapped(vectors[0]![i]!, vector!.length), vector!)).toBeGreaterThan(1 - 1e-5)
    expect(cosine(vectors[1]![0]!, vectors[0]![1]!)).toBeGreaterThan(1 - 1e-6)
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

  test.each([
    ["clip", { patch_size: 64 }, /'patch_size' is larger than 'image_size'/],
    ["clip", { num_attention_heads: 5 }, /5 heads don't fit a width of 32/],
    ["clip", { image_size: 9_000 }, /'image_size' is 9000, not between/],
    ["clip", { num_channels: 1 }, /'num_channels' is not 3/],
    ["siglip", { vision_use_head: false }, /'vision_use_head' is off/],
    ["siglip", { hidden_act: "swish" }, /activation is 'swish'/],
    ["siglip2", { num_patches: 12 }, /'num_patches' is 12, no square/],
  ])("refuses %s with %j", async (name, section, message) => {
    const { vision_config } = JSON.parse(
      readFileSync(join(towerFolder(name), "config.json"), "utf8"),
    ) as { readonly vision_config: object }
    const config = { vision_config: { ...vision_config, ...section } }
    await expect(open(changed({ "config.json": config }, name))).rejects.toThrow(message)
  })
})
