import type { Value } from "../../onnx/graph-builder.ts"
import { decodeRow, type Matrix } from "../../weights/matrix.ts"
import { Damaged, Unsupported } from "../../weights/model-file-error.ts"
import type { TensorSource } from "../../weights/tensor-file.ts"
import type { PartBuilding } from "../graph/layers.ts"

interface Table {
  /** Edge of the grid, in patches. */
  readonly positions: number
  readonly width: number
}

const tensorName = "pos_embed.pos_embed"

/** The table `[1, positions * positions, width]` with a row for each place, row by row. */
const tableOf = (file: TensorSource, { positions, width }: Table): Matrix => {
  const entry = file.tensor(tensorName)
  const rows = positions ** 2
  if (entry.rows * entry.columns !== rows * width)
    throw new Damaged(
      `the tensor '${tensorName}' has not ${positions} x ${positions} rows of ${width} values`,
    )
  const shaped = { ...entry, rows, columns: width }
  return {
    name: tensorName,
    rows,
    columns: width,
    typeOf: () => entry.type,
    row: (row) => file.rows(shaped, row, 1),
  }
}

/**
 * Embeddings of columns and of rows, `[positions, width / 2]` each, of which those of all places are
 * made: the table of a large model would be most of its memory. The first half of an embedding
 * tells the column. Checked at some places; throws `Unsupported` where the table is not made so.
 */
const separated = (file: TensorSource, size: Table) => {
  const { positions, width } = size
  const half = width / 2
  const table = tableOf(file, size)
  const [columns, rows] = [0, 1].map(() => new Float32Array(positions * half)) as [
    Float32Array,
    Float32Array,
  ]
  const place = new Float32Array(width)
  for (let i = 0; i < positions; i++) {
    decodeRow(table, i, place)
    columns.set(place.subarray(0, half), i * half)
    decodeRow(table, i * positions, place)
    rows.set(place.subarray(half), i * half)
  }
  for (let i = 0; i < positions; i++) {
    const column = (7 * i + 3) % positions
    decodeRow(table, i * positions + column, place)
    const isMade = place.every(
      (value, at) =>
        value === (at < half ? columns[column * half + at] : rows[i * half + at - half]),
    )
    if (!isMade)
      throw new Unsupported(
        `the tensor '${tensorName}' is not made of embeddings of rows and of columns`,
      )
  }
  return { columns, rows }
}

/**
 * Position embeddings `[1,S,width]` of a grid `[rows, columns]` of patches, which lies in the middle
 * of the table's.
 */
export const positionsOf = (building: PartBuilding, size: Table, grid: Value): Value => {
  const { graph, file } = building
  const { positions, width } = size
  const half = width / 2
  const made = separated(file, size)
  const kept = (values: Float32Array): Value => {
    const name = graph.name("places")
    graph.store.write(graph.weights(name, "float", [positions, half]), 0, values)
    return name
  }
  const first = graph.node("Div", [
    graph.node("Sub", [graph.ints([positions, positions]), grid]),
    graph.ints([2]),
  ])
  const end = graph.node("Add", [first, grid])
  const part = (value: Value, axis: number) =>
    graph.node("Slice", [value, graph.ints([axis]), graph.ints([axis + 1]), graph.ints([0])])
  const inside = (table: Value, axis: number) =>
    graph.node("Slice", [table, part(first, axis), part(end, axis), graph.ints([0])])
  const shape = graph.concat([grid, graph.ints([half])], 0)
  const everywhere = (table: Value, axis: number) =>
    graph.node("Expand", [
      graph.node("Unsqueeze", [inside(table, axis), graph.ints([1 - axis])]),
      shape,
    ])
  const both = graph.concat([everywhere(kept(made.columns), 1), everywhere(kept(made.rows), 0)], 2)
  return graph.node("Reshape", [both, graph.ints([1, -1, width])])
}
