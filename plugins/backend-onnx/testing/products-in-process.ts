// Multiplies matrices in the process's own kernels and writes as JSON what ran and how exact it was.
// usage: node --import tsx products-in-process.ts FOLDER
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { writeGraph } from "../onnx/graph-cache.ts"
import { kernelsName, kernelsVersion } from "../onnx/kernels.ts"
import { linear } from "../onnx/linear.ts"
import { openSession, type Session } from "../onnx/onnx-session.ts"
import { Tensor } from "../onnx/runtime.ts"
import { inputBlock, inputRows, matrixOfType, valuesOf, worstOf } from "./products.ts"

export interface ProductsReport {
  readonly name?: string
  readonly version?: string
  readonly operators: readonly string[]
  /** How far the worst product is off, over what may be. */
  readonly worst: number
  /** Products that are finite where a number of their row is not. */
  readonly hidden: number
  /** SHA-256 of all products. */
  readonly digest: string
}

const folder = process.argv[2]!
/** What keeps these types without loss; the last has panels and blocks that are not full. */
const cases = [
  { type: "Q4_K", precision: "auto", rows: 35, columns: 512 },
  { type: "IQ4_NL", precision: "auto", rows: 40, columns: 160 },
  { type: "IQ4_XS", precision: "auto", rows: 64, columns: 256 },
  { type: "Q5_0", precision: "auto", rows: 33, columns: 96 },
  { type: "Q5_K", precision: "auto", rows: 20, columns: 2304 },
  { type: "Q5_K", precision: "int8", rows: 35, columns: 256 },
  { type: "Q2_K", precision: "auto", rows: 20, columns: 2304 },
  { type: "Q3_K", precision: "auto", rows: 20, columns: 2304 },
  { type: "Q3_K", precision: "auto", rows: 70, columns: 512 },
  { type: "Q6_K", precision: "auto", rows: 20, columns: 2304 },
  { type: "Q6_K", precision: "auto", rows: 35, columns: 512 },
  { type: "Q4_0", precision: "int4", rows: 100, columns: 512 },
  { type: "Q4_1", precision: "int4", rows: 64, columns: 256 },
  { type: "Q8_0", precision: "int8", rows: 33, columns: 96 },
] as const
const count = 37

/** Rows of which one number is not finite, at each place of a span of blocks. */
const spoiltRows = (columns: number): readonly Float32Array[] =>
  Array.from({ length: 2 * Math.min(columns, 128) }, (_, n) =>
    inputRows(1, columns)[0]!.with(n >> 1, n % 2 ? Number.POSITIVE_INFINITY : Number.NaN),
  )

const productsOf = async (
  session: Session,
  inputs: readonly Float32Array[],
): Promise<Float32Array> => {
  const columns = inputs[0]!.length
  const x = new Float32Array(inputs.length * columns)
  for (const [n, row] of inputs.entries()) x.set(row, n * columns)
  const { y } = await session.run({ x: new Tensor("float32", x, [1, inputs.length, columns]) })
  return y!.data as Float32Array
}

const digest = createHash("sha256")
const operators = new Set<string>()
let worst = 0
let hidden = 0
for (const { type, precision, rows, columns } of cases) {
  const matrix = matrixOfType(type, rows, columns)
  const weights = Array.from({ length: rows }, (_, row) => valuesOf(matrix, row))
  const name = `${type}-${precision}-${rows}`
  const block = inputBlock(matrix.typeOf(0).levels?.bits ?? 8)
  const files = { graph: `${name}.onnx`, weights: `${name}.bin` }
  writeGraph(folder, files, (graph) => {
    graph.input("x", "float", ["B", "S", columns])
    graph.output("y", linear(graph, "x", matrix, precision), "float", ["B", "S", rows])
  })
  const bytes = readFileSync(join(folder, files.graph), "latin1")
  for (const [name] of bytes.matchAll(/BlockMatMul|MatMulNBits/g)) operators.add(name)
  const session = await openSession(join(folder, files.graph), 2)
  const inputs = inputRows(count, columns)
  const products = await productsOf(session, inputs)
  digest.update(new Uint8Array(products.buffer, products.byteOffset, products.byteLength))
  for (const [n, row] of inputs.entries())
    worst = Math.max(
      worst,
      worstOf(row, weights, products.subarray(n * rows, (n + 1) * rows), block),
    )
  hidden += (await productsOf(session, spoiltRows(columns))).filter(Number.isFinite).length
  await session.release()
}
const [name, version] = [kernelsName(), kernelsVersion()]
console.log(
  JSON.stringify({
    ...(name !== undefined && { name }),
    ...(version !== undefined && { version }),
    operators: [...operators],
    worst,
    hidden,
    digest: digest.digest("hex"),
  } satisfies ProductsReport),
)
