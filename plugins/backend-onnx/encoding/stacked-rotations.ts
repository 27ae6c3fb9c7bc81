import { seededRandom } from "../sampling/random.ts"

/** Dimensions of every embedding that this backend returns. */
export const spaceDimensions = 2048

/** Part of the embedding space's id: vectors of another map are not comparable. */
export const mapVersion = (isMatryoshka: boolean): string => (isMatryoshka ? "m1" : "r1")

const dot = (a: Float64Array, b: Float64Array): number => {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}

/**
 * `columns` orthonormal vectors of `rows` numbers: random signs, then modified Gram-Schmidt, twice.
 * Only + - * / and sqrt are used, which IEEE 754 defines to the last bit, so the map is the same on
 * every machine.
 */
const orthonormalColumns = (
  rows: number,
  columns: number,
  random: () => number,
): readonly Float64Array[] => {
  const basis: Float64Array[] = []
  while (basis.length < columns) {
    const column = Float64Array.from({ length: rows }, () => (random() < 0.5 ? -1 : 1))
    for (let pass = 0; pass < 2; pass++)
      for (const other of basis) {
        const along = dot(column, other)
        for (let i = 0; i < rows; i++) column[i] = column[i]! - along * other[i]!
      }
    const norm = Math.sqrt(dot(column, column))
    // columns that are linearly dependent on earlier ones are discarded
    if (norm > 1e-6 * rows) basis.push(column.map((value) => value / norm))
  }
  return basis
}

/**
 * Rows of each block: square blocks of `inputs` rows, and a last block with the remaining rows (at
 * least `inputs`).
 */
const blockRows = (inputs: number, outputs: number): readonly number[] => {
  const squares = Math.floor(outputs / inputs) - 1
  return [...Array.from({ length: squares }, () => inputs), outputs - squares * inputs]
}

/**
 * The length of the shortest prefix of mapped vectors that keeps their cosines exactly. The
 * identity keeps them with the model's own vector, whatever rows follow in its block.
 */
export const exactPrefix = (inputs: number, outputs: number, keepsFirst = false): number =>
  keepsFirst ? inputs : blockRows(inputs, outputs)[0]!

/** `columns` unit vectors of `rows` numbers: what they are multiplied with stays as it is. */
const identityColumns = (rows: number, columns: number): readonly Float64Array[] =>
  Array.from({ length: columns }, (_, column) => {
    const vector = new Float64Array(rows)
    vector[column] = 1
    return vector
  })

/**
 * The fixed map of a model's vectors into the embedding space, `[outputs, inputs]` in row-major
 * order: random rotations stacked on each other, each weighted by the square root of its share of
 * the rows.
 *
 * All columns are orthonormal, so dot products and cosines are kept exactly. Clients may cut
 * vectors to a prefix: a prefix that ends with a block
 * (384, 768, 1152, 1536 and 2048 of 2048 for 384 inputs) keeps cosines exactly as well; one inside
 * the first block is a random projection
 * (Johnson-Lindenstrauss: a cosine is off by about sqrt((1 - d/inputs) / d)); between blocks the
 * exact part dilutes the random one.
 *
 * `keepsFirst`: the first block is the identity, so a prefix inside it is the model's own, up to a
 * factor: for models whose prefixes are trained (Matryoshka, Kusupati et al., arXiv 2205.13147).
 */
export const stackedRotations = (
  inputs: number,
  outputs: number,
  keepsFirst = false,
): Float32Array => {
  if (inputs < 1 || inputs > outputs)
    throw new RangeError(`vectors of ${inputs} numbers don't fit a space of ${outputs}`)
  const random = seededRandom(20_480_384)
  const map = new Float32Array(outputs * inputs)
  let first = 0
  for (const rows of blockRows(inputs, outputs)) {
    const weight = Math.sqrt(rows / outputs)
    const columns =
      keepsFirst && first === 0
        ? identityColumns(rows, inputs)
        : orthonormalColumns(rows, inputs, random)
    // row by row, in memory order: column by column takes as long as everything else
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < inputs; column++)
        map[(first + row) * inputs + column] = weight * columns[column]![row]!
    first += rows
  }
  return map
}
