import type { Value } from "../../onnx/graph-builder.ts"
import { decodeRow, matrixOf } from "../../weights/matrix.ts"
import { linear, type PartBuilding, silu } from "../graph/layers.ts"
import { placeFeatures } from "./iris-grid.ts"
import { attended, type IrisConfig, namedNorm } from "./iris-layers.ts"

/** Width of the layers that say where things stand, and of their keys. */
const narrow = 256
const keys = 32

/** States of the text's tokens `[1,T,width]` and their mean `[1,1,width]`. */
export interface RefinedText {
  readonly states: Value
  readonly mean: Value
}

/** What each slot's thing looks like where it fills the grid: `[1,slots*tokens,values]`. */
const looks = (
  building: PartBuilding,
  config: IrisConfig,
  { states, mean }: RefinedText,
): Value => {
  const { graph, file } = building
  const { width, slots, sketchGrid, sketchValues, sketchHidden } = config
  const own = new Float32Array(slots * width)
  const matrix = matrixOf(file, "sketch.queries", { rows: slots, columns: width })
  for (let row = 0; row < slots; row++)
    decodeRow(matrix, row, own.subarray(row * width, (row + 1) * width))
  const queries = graph.node("Reshape", [graph.floats([...own]), graph.ints([1, slots, width])])
  const asked = namedNorm(building, "sketch.norm", graph.node("Add", [queries, mean]), width)
  const read = attended(building, "sketch.attn", asked, config, { context: states })
  const share = sharesIn(building, slots)
  const x = graph.node("Add", [graph.node("Mul", [share, mean]), read])
  const through = (name: string, of: Value, rows: number, columns: number) =>
    linear(building, `sketch.${name}`, of, { rows, columns })
  const first = silu(building, through("linear_1", x, sketchHidden, width))
  const code = silu(building, through("linear_2", first, width, sketchHidden))
  const all = through("linear_3", code, sketchGrid ** 2 * sketchValues, width)
  return graph.node("Reshape", [all, graph.ints([1, -1, sketchValues])])
}

const sharesIn = ({ graph, file }: PartBuilding, slots: number): Value => {
  const shares = new Float32Array(1)
  const matrix = matrixOf(file, "sketch.share", { rows: slots, columns: 1 })
  const all = Array.from({ length: slots }, (_, row) => {
    decodeRow(matrix, row, shares)
    return shares[0]!
  })
  return graph.node("Reshape", [graph.floats(all), graph.ints([1, slots, 1])])
}

/** Where each token of the grid reads: what its own place counts, and the readers' shares. */
const layout = (building: PartBuilding, config: IrisConfig, mean: Value) => {
  const { graph } = building
  const { width, slots, readers, frequencies, sketchGrid } = config
  const tokens = sketchGrid ** 2
  const columns = 6 * frequencies
  const grid = { rows: sketchGrid, columns: sketchGrid }
  const features = graph.node("Reshape", [
    graph.floats([...placeFeatures(grid, frequencies)]),
    graph.ints([1, tokens, columns]),
  ])
  const through = (name: string, of: Value, rows: number, inputs: number) =>
    linear(building, `sketch.${name}`, of, { rows, columns: inputs })
  const begun = graph.node("Add", [
    through("place", features, narrow, columns),
    through("layout", mean, narrow, width),
  ])
  const hidden = silu(building, through("place_1", silu(building, begun), narrow, narrow))
  const outputs = readers * (slots + keys)
  const all = through("place_2", hidden, 1 + outputs, narrow)
  const parts = [graph.name("own"), graph.name("reading")]
  const [own, reading] = graph.split(all, graph.ints([1, outputs]), parts, 2)
  const byReader = graph.node("Reshape", [reading!, graph.ints([1, -1, slots + keys])])
  const names = [graph.name("slots"), graph.name("query")]
  const [slot, query] = graph.split(byReader, graph.ints([slots, keys]), names, 2)
  const softmax = (of: Value) => graph.node("Softmax", [of], { attributes: { axis: -1 } })
  const placed = through("place_keys", features, keys, columns)
  const scores = graph.matmul(query!, placed, { transposed: 3 })
  const slotShares = graph.node("Unsqueeze", [softmax(slot!), graph.ints([3])])
  const placeShares = graph.node("Unsqueeze", [softmax(scores), graph.ints([2])])
  const shares = graph.node("Reshape", [
    graph.node("Mul", [slotShares, placeShares]),
    graph.ints([1, -1, slots * tokens]),
  ])
  return { own: graph.node("Add", [own!, graph.floats(1)]), shares }
}

/**
 * What the text alone says, as a coarse picture (plugins/model-iris/train/sketch_layer.py): slots
 * read the text, and each token of a square grid reads the pictures of the slots.
 * `[1,sketchGrid^2,sketchValues]`.
 */
export const sketched = (building: PartBuilding, config: IrisConfig, text: RefinedText): Value => {
  const { graph } = building
  const { readers, sketchGrid, sketchValues } = config
  const tokens = sketchGrid ** 2
  const pictures = looks(building, config, text)
  const { own, shares } = layout(building, config, text.mean)
  const read = graph.node("Reshape", [
    graph.node("MatMul", [shares, pictures]),
    graph.ints([1, tokens, readers * sketchValues]),
  ])
  const sizes = { rows: sketchValues, columns: readers * sketchValues }
  const others = linear(building, "sketch.merge", read, sizes)
  const range = [graph.ints([0]), graph.ints([tokens]), graph.ints([1])]
  const first = graph.node("Slice", [pictures, ...range])
  return graph.node("Add", [graph.node("Mul", [own, first]), others])
}
