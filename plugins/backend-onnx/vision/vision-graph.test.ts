import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { spaceDimensions } from "../encoding/stacked-rotations.ts"
import { graphFile, writeGraph } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { expectedTower, towerFolder } from "../testing/fixtures.ts"
import { cosine, unmapped } from "../testing/open-encoder.ts"
import { openSafetensorsFolder } from "../weights/safetensors-folder.ts"
import { pictureFeeds } from "./picture-feeds.ts"
import { visionConfig } from "./vision-config.ts"
import { buildVisionGraph } from "./vision-graph.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-vision-graphs-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const vectorsOf = async (name: string, precision: "fp32" | "int8") => {
  const source = towerFolder(name)
  const folder = mkdtempSync(join(root, "graph-"))
  const config = visionConfig(source)
  const file = openSafetensorsFolder(source)
  writeGraph(folder, { graph: graphFile, weights: "weights.bin" }, (graph) =>
    buildVisionGraph({ graph, file, precision }, config, () => {}),
  )
  file.close()
  const session = await openSession(join(folder, graphFile), 1)
  const { width, height } = config.preprocessing
  const pictures = expectedTower(name).pixels.map((pixels) => ({ pixels, width, height }))
  const { vectors } = await session.run(pictureFeeds(config)(pictures))
  await session.release()
  const all = vectors!.data as Float32Array
  return pictures.map((_, row) => all.subarray(row * spaceDimensions, (row + 1) * spaceDimensions))
}

test.each(["efficientnet-lite", "clip", "siglip", "siglip2"])(
  "%s makes the vectors of another implementation",
  async (name) => {
    const { vectors: wanted } = expectedTower(name)
    const found = await vectorsOf(name, "fp32")
    for (const [row, vector] of wanted.entries()) {
      expect(Math.hypot(...found[row]!)).toBeCloseTo(1, 5)
      expect(cosine(unmapped(found[row]!, vector.length), vector)).toBeGreaterThan(1 - 1e-6)
    }
  },
)

test.each(["clip", "siglip", "siglip2"])("%s loses little in 8 bits", async (name) => {
  const { vectors: wanted } = expectedTower(name)
  const found = await vectorsOf(name, "int8")
  for (const [row, vector] of wanted.entries())
    expect(cosine(unmapped(found[row]!, vector.length), vector)).toBeGreaterThan(0.995)
})
