import { join } from "node:path"
import { writeGraph } from "../onnx/graph-cache.ts"
import { channelProduct } from "../onnx/int8-channels.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { Tensor } from "../onnx/runtime.ts"
import { ModelFileError } from "../weights/model-file-error.ts"

const files = { graph: "digits.onnx", weights: "digits.bin" }
const [rows, columns] = [16, 64]

/** All weights of even rows are the largest; those of the others change their sign. */
const weight = (row: number, column: number): number =>
  row % 2 === 0 || (row + column) % 3 ? 127 : -127

const input = Float32Array.from({ length: columns }, (_, i) => 1 + 0.9 * Math.sin(7919 * i))

/** Writes a product by `channelProduct` beside a model's graph. */
export const writeDigits = (folder: string): void =>
  writeGraph(folder, files, (graph) => {
    const q = graph.weights("q", "int8", [columns, rows])
    const scales = graph.weights("s", "float", [rows])
    const transposed = Int8Array.from({ length: rows * columns }, (_, i) =>
      weight(i % rows, Math.floor(i / rows)),
    )
    graph.store.write(q, 0, transposed)
    graph.store.write(scales, 0, new Float32Array(rows).fill(1))
    graph.input("x", "float", [1, 1, columns])
    const product = channelProduct(graph, "x", { rows, columns }, { q: "q", scales: "s" })
    graph.output("y", product, "float", [1, 1, rows])
  })

/**
 * Runs the product that `writeDigits` wrote. Throws `ModelFileError` where sums of this CPU's
 * products of 8 bits saturate, as those of x86 without VNNI do: models would write nonsense.
 */
export const checkDigits = async (folder: string, path: string): Promise<void> => {
  const session = await openSession(join(folder, files.graph), 1)
  try {
    const { y } = await session.run({ x: new Tensor("float32", input, [1, 1, columns]) })
    const found = y!.data as Float32Array
    for (let row = 0; row < rows; row++) {
      const exact = input.reduce((sum, value, i) => sum + value * weight(row, i), 0)
      if (Math.abs(found[row]! - exact) > 0.001 * 127 * columns)
        throw new ModelFileError(
          path,
          "this CPU adds up products of 8 bits with saturation, so it can't run int8-channel",
          "Ask for precision auto or int8, and for no promptPrecision",
        )
    }
  } finally {
    await session.release()
  }
}
