import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Tensor } from "onnxruntime-node"
import { gridTables } from "../../plugins/backend-onnx/diffusion/iris/iris-grid.ts"
import {
  buildIrisTransformer,
  irisConfig,
} from "../../plugins/backend-onnx/diffusion/iris/iris-transformer.ts"
import {
  noiseOf,
  number,
  type WiderPart,
} from "../../plugins/backend-onnx/diffusion/testing/wider-parts.ts"
import type { Metadata } from "../../plugins/backend-onnx/weights/gguf-metadata.ts"
import { openSafetensorsFolder } from "../../plugins/backend-onnx/weights/safetensors-folder.ts"

const plugins = join(import.meta.dirname, "..", "..", "plugins")
const folder = join(plugins, "model-iris", "weights", "transformer")

/** The default model, whose own weights are here. */
export const irisPart = (): WiderPart => {
  const config = irisConfig(
    new Map(
      Object.entries(JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as object),
    ) as Metadata,
  )
  const grid = { rows: 8, columns: 8 }
  const count = grid.rows * grid.columns
  return {
    name: "Iris (its own weights)",
    file: () => openSafetensorsFolder(folder),
    build: (building) => buildIrisTransformer(building, config),
    feeds: () => {
      const sizes = { ...config, headSize: config.width / config.heads }
      const { places, cos, sin, across } = gridTables(grid, 1, sizes)
      const table = (values: Float32Array) =>
        new Tensor("float32", values, [count, values.length / count])
      return {
        latents: noiseOf(1, count, config.channels),
        pictures: new Tensor("int64", new BigInt64Array(count), [count]),
        canvas: new Tensor("int64", BigInt64Array.of(BigInt(count)), [1]),
        places: new Tensor("float32", places, [1, count, places.length / count]),
        ...{ cos: table(cos), sin: table(sin), across: table(across) },
        text: noiseOf(1, 16, config.textWidth),
        timestep: number(0.5),
      }
    },
  }
}
