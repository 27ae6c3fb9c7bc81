import { toHalves } from "../weights/float16.ts"
import type { GgmlType } from "../weights/ggml-types.ts"
import type { Matrix } from "../weights/matrix.ts"
import { type AdapterInputs, productScale } from "./adapter-inputs.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import { needsShifts, quantizeBlocks } from "./int4-blocks.ts"
import { blockSize, needsZeros, quantizeRow } from "./int8-blocks.ts"
import { type ProductInput, rowsAsValue } from "./product-input.ts"
import { batchRows, inBatches, someRow } from "./row-batches.ts"
import { regionAlignment, type StoredWeights } from "./weight-store.ts"

/** Bits of a level. */
export type LevelBits = 4 | 8

/** Rows whose levels lie together: the outputs that the native kernel computes at once. */
const panelRows = 16
/** Levels in a word: the products of 8 bits that an instruction (VNNI) adds up. */
const wordLevels = 4
const wordsPerRow = blockSize / wordLevels

/** Whether the scales and shifts of rows of this type are halves in its file, and stay what they are. */
export const hasHalfScales = ({ name }: GgmlType, bits: LevelBits): boolean =>
  bits === 4 ? name === "Q4_0" || name === "Q4_1" : name === "Q8_0"

/** A row's levels, a scale and a shift for each block of 32. */
interface PanelRow {
  readonly levels: Uint8Array
  readonly scales: Float32Array
  readonly shifts: Float32Array
}

type Quantize = (type: GgmlType, bytes: Uint8Array, row: PanelRow) => void

/**
 * value = scale * level + shift: a minimum that is a half in the file stays one, which `minimum + 8 *
 * scale` would not. Without shifts, value = scale * (level - 8).
 */
const toFourBits = (columns: number): Quantize => {
  const decoded = new Float32Array(columns)
  return (type, bytes, { levels, scales, shifts }) =>
    quantizeBlocks(type, bytes, decoded, (block, found, scale, minimum) => {
      levels.set(found, block * blockSize)
      scales[block] = scale
      shifts[block] = minimum
    })
}

/** value = scale * (level - 128) + shift */
const toEightBits = (columns: number): Quantize => {
  const decoded = new Float32Array(columns)
  const zeros = new Uint8Array(Math.ceil(columns / blockSize))
  return (type, bytes, { levels, scales, shifts }) => {
    quantizeRow(type, bytes, decoded, { q: levels, scales, zeros })
    for (let block = 0; block < zeros.length; block++)
      shifts[block] = (128 - zeros[block]!) * scales[block]!
  }
}

/** Writes the words of a row's block, each `panelRows` words after the other. */
type Place = (from: Uint32Array, at: number, into: Uint32Array, start: number) => void

/** Levels of the first half of a block are low nibbles, those of the second half high ones. */
const placeFourBits: Place = (from, at, into, start) => {
  for (let word = 0; word < wordsPerRow / 2; word++)
    into[start + word * panelRows] = from[at + word]! | (from[at + wordsPerRow / 2 + word]! << 4)
}

const placeEightBits: Place = (from, at, into, start) => {
  for (let word = 0; word < wordsPerRow; word++) into[start + word * panelRows] = from[at + word]!
}

/** `zero`: the level of 0 where there are no shifts. */
const formats = {
  4: { quantizer: toFourBits, place: placeFourBits, needsShifts, zero: 8, shiftedZero: 0 },
  8: {
    quantizer: toEightBits,
    place: placeEightBits,
    needsShifts: needsZeros,
    zero: 128,
    shiftedZero: 128,
  },
}

const bytesOf = (bits: LevelBits): number => (panelRows * blockSize * bits) / 8

/** Packs a batch of rows into panels. */
const packer = (columns: number, bits: LevelBits) => {
  const { quantizer, place } = formats[bits]
  const blocks = Math.ceil(columns / blockSize)
  const blockWords = bytesOf(bits) / wordLevels
  const panelBlocks = (batchRows / panelRows) * blocks
  const words = new Uint32Array(panelBlocks * blockWords)
  const scales = new Float32Array(panelBlocks * panelRows)
  const shifts = new Float32Array(panelBlocks * panelRows)
  const row = {
    levels: new Uint8Array(blocks * blockSize),
    scales: new Float32Array(blocks),
    shifts: new Float32Array(blocks),
  }
  const rowWords = new Uint32Array(row.levels.buffer)
  const quantize = quantizer(columns)
  const set = (index: number, type: GgmlType, bytes: Uint8Array): void => {
    quantize(type, bytes, row)
    const first = Math.floor(index / panelRows) * blocks
    const within = index % panelRows
    for (let block = 0; block < blocks; block++) {
      const at = (first + block) * panelRows + within
      scales[at] = row.scales[block]!
      shifts[at] = row.shifts[block]!
      place(rowWords, block * wordsPerRow, words, (first + block) * blockWords + within)
    }
  }
  // rows of a panel that the matrix has not are zeros
  const clear = (): void => {
    for (const part of [words, scales, shifts]) part.fill(0)
  }
  return { words, scales, shifts, set, clear }
}

/** A number of scales or shifts in the store, as floats or halves. */
const reserveScales = ({ store }: GraphBuilder, count: number, areHalves: boolean) => {
  const region = store.reserve(count * (areHalves ? 2 : 4))
  const write = (at: number, values: Float32Array): void => {
    const stored = areHalves ? new Uint16Array(values.length) : values
    if (stored instanceof Uint16Array) toHalves(values, stored)
    store.write(region, at * stored.BYTES_PER_ELEMENT, stored)
  }
  return { region, write }
}

/** A place in the store as the operator's attributes have it. */
const placeOf = ({ offset }: StoredWeights): number => offset / regionAlignment

/** What is added to a product. */
export interface Additions {
  readonly bias?: Float32Array | undefined
  readonly adapters?: AdapterInputs | undefined
}

/**
 * Writes a matrix in panels of 16 rows, the order in which the native kernel reads it, and returns
 * `x [.., columns]` times the matrix, transposed: `[.., rows]`. A panel has its blocks of 32 columns
 * one after another, and a block has four levels of each row in turn. For 4 bits the number of
 * columns is a multiple of 32.
 */
export const panelProduct = (
  graph: GraphBuilder,
  x: Value | ProductInput,
  matrix: Matrix,
  bits: LevelBits,
  { bias, adapters }: Additions = {},
): Value => {
  const { rows, columns } = matrix
  const { needsShifts: needs, zero, shiftedZero } = formats[bits]
  const isShifted = someRow(matrix, needs)
  // the shift of a row that would need none, among others, may be beyond halves
  const areHalves = !someRow(
    matrix,
    (type) => !hasHalfScales(type, bits) || needs(type) !== isShifted,
  )
  const blocks = Math.ceil(columns / blockSize)
  const panelBlocks = Math.ceil(rows / panelRows) * blocks
  const levels = graph.store.reserve(panelBlocks * bytesOf(bits))
  const scales = reserveScales(graph, panelBlocks * panelRows, areHalves)
  const shifts = isShifted ? reserveScales(graph, panelBlocks * panelRows, areHalves) : undefined
  const batch = packer(columns, bits)
  inBatches(matrix, (first, count) => {
    if (count % panelRows) batch.clear()
    for (let i = 0; i < count; i++) batch.set(i, matrix.typeOf(first + i), matrix.row(first + i))
    const from = (first / panelRows) * blocks
    const filled = Math.ceil(count / panelRows) * blocks
    const words = batch.words.subarray(0, (filled * bytesOf(bits)) / wordLevels)
    graph.store.write(levels, from * bytesOf(bits), words)
    scales.write(from * panelRows, batch.scales.subarray(0, filled * panelRows))
    shifts?.write(from * panelRows, batch.shifts.subarray(0, filled * panelRows))
  })
  const step = typeof x === "string" ? undefined : x.step
  const [normWeights = "", added = ""] = step?.inputs ?? []
  const inputs = [graph.wholeFile(), normWeights, added]
  inputs.push(bias ? graph.floats([...bias]) : "")
  if (adapters) inputs.push(adapters.a, adapters.b, adapters.scales)
  while (inputs.at(-1) === "") inputs.pop()
  const product = graph.name("product")
  graph.nodeWith(
    "BlockMatMul",
    [step?.x ?? rowsAsValue(x), ...inputs],
    [product, ...(step?.sum === undefined ? [] : [step.sum])],
    {
      attributes: {
        N: rows,
        K: columns,
        bits,
        zero: isShifted ? shiftedZero : zero,
        halves: areHalves ? 1 : 0,
        levels: placeOf(levels),
        scales: placeOf(scales.region),
        ...(shifts && { shifts: placeOf(shifts.region) }),
        ...step?.attributes,
        ...(adapters && {
          adapter_factor: { float: productScale ** 2 },
          adapter_index: adapters.index ?? 0,
        }),
      },
      domain: "rakit",
    },
  )
  return product
}
