import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Tensor } from "onnxruntime-node"
import { expect, test } from "vitest"
import { visionConfig } from "../architectures/vision-config.ts"
import { spaceDimensions, stackedRotations } from "../encoding/stacked-rotations.ts"
import { graphFile, writeGraph } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { expectedTower, fixtureFolder } from "../testing/fixtures.ts"
import { openSafetensorsFolder } from "../weights/safetensors-folder.ts"
import { buildVisionGraph } from "./vision-graph.ts"

const vectorsOf = async (name: string) => {
  const source = fixtureFolder(name)
  const folder = mkdtempSync(join(tmpdir(), "vision-graph-"))
  const config = visionConfig(source)
  const file = openSafetensorsFolder(source)
  writeGraph(folder, { graph: graphFile, weights: "weights.bin" }, (graph) =>
    buildVisionGraph({ graph, file, precision: "fp32" }, config, () => {}),
  )
  file.close()
  const session = await openSession(join(folder, graphFile), 1)
  const { pixels } = expectedTower(name)
  const { width, height } = config.preprocessing
  const { vectors } = await session.run({
    pixels: new Tensor("uint8", Buffer.concat(pixels), [pixels.length, height, width, 3]),
  })
  await session.release()
  const all = vectors!.data as Float32Array
  return pixels.map((_, row) => all.subarray(row * spaceDimensions, (row + 1) * spaceDimensions))
}

/** The columns of the map are orthonormal, so its transpose leads back. */
const unmapped = (vector: Float32Array, width: number): readonly number[] => {
  const map = stackedRotations(width, spaceDimensions)
  return Array.from({ length: width }, (_, column) =>
    vector.reduce((sum, value, row) => sum + value * map[row * width + column]!, 0),
  )
}

test.each(["efficientnet-lite"])("%s makes the vectors of another implementation", async (name) => {
  const { vectors: wanted } = expectedTower(name)
  const found = await vectorsOf(name)
  for (const [row, vector] of wanted.entries()) {
    const own = unmapped(found[row]!, vector.length)
    expect(Math.hypot(...own)).toBeCloseTo(1, 5)
    const cosine = own.reduce((sum, value, i) => sum + value * vector[i]!, 0)
    expect(1 - cosine).toBeLessThan(1e-5)
    for (const [i, value] of vector.entries()) expect(own[i]).toBeCloseTo(value, 3)
  }
})
