import { groupValues } from "../weights/ggml-blocks.ts"
import type { GgmlType } from "../weights/ggml-types.ts"
import type { Matrix } from "../weights/matrix.ts"
import { type AdapterInputs, productScale } from "./adapter-inputs.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import { quantizeBlocks } from "./int4-blocks.ts"
import { blockSize, quantizeRow } from "./int8-blocks.ts"
import {
  keptLevels,
  type LevelBits,
  type PanelFormat,
  panelFormat,
  panelRows,
  scaleKinds,
  zeroOf,
} from "./panel-format.ts"
import { placeOf, type RowScales, type ScaleWriter, scaleWriter } from "./panel-scales.ts"
import { type ProductInput, rowsAsValue } from "./product-input.ts"
import { batchRows, inBatches, typesIn } from "./row-batches.ts"
import type { StoredWeights } from "./weight-store.ts"

/** Levels in a word: the products of 8 bits that an instruction (VNNI) adds up. */
const wordLevels = 4
const wordsPerRow = blockSize / wordLevels

/** A row's levels, a scale and a shift for each group. */
interface PanelRow extends RowScales {
  readonly levels: Uint8Array
}

type Quantize = (type: GgmlType, bytes: Uint8Array, row: PanelRow) => void

/**
 * value = scale * level + shift, or scale * codes[level] + shift: a minimum that is a half in the file
 * stays one, which `minimum + 8 * scale` would not. Without shifts and codes, value = scale * (level -
 * zero), as a minimum is -zero * scale then.
 */
const toLevels = (columns: number, format: PanelFormat): Quantize => {
  const decoded = new Float32Array(columns)
  return (type, bytes, { levels, scales, shifts }) => {
    const kept = keptLevels(type, format)
    quantizeBlocks(type, bytes, decoded, kept, (group, found, scale, minimum) => {
      levels.set(found, group * found.length)
      scales[group] = scale
      shifts[group] = minimum
    })
  }
}

/** value = scale * (level - 128) + shift */
const toEightBits = (columns: number, format: PanelFormat): Quantize => {
  const decoded = new Float32Array(columns)
  const zeros = new Uint8Array(Math.ceil(columns / blockSize))
  const keep = toLevels(columns, format)
  return (type, bytes, row) => {
    const { levels, scales, shifts } = row
    const kept = keptLevels(type, format)
    if (kept) {
      keep(type, bytes, row)
      const offset = 128 - (kept.hasMinimums ? 0 : 16)
      for (let i = 0; i < levels.length; i++) levels[i]! += offset
      if (!kept.hasMinimums) shifts.fill(0)
      return
    }
    quantizeRow(type, bytes, decoded, { q: levels, scales, zeros })
    for (let block = 0; block < zeros.length; block++)
      shifts[block] = (128 - zeros[block]!) * scales[block]!
  }
}

/** Writes the words of a row's block, of the panel's row `within`, each `panelRows` words after the other. */
type Place = (
  from: Uint32Array,
  at: number,
  into: Uint32Array,
  start: number,
  within: number,
) => void

/** Levels of the first half of a block are low nibbles, those of the second half high ones. */
const placeFourBits: Place = (from, at, into, start, within) => {
  const to = start + within
  for (let word = 0; word < wordsPerRow / 2; word++) {
    const [low, high] = [from[at + word]!, from[at + wordsPerRow / 2 + word]!]
    into[to + word * panelRows] = (low & lowNibbles) | ((high & lowNibbles) << 4)
  }
}

const lowNibbles = 0x0f0f0f0f

/**
 * Two bits of each level, from bit `bit` on, written `plane` words into the block: a byte has those of
 * four words, which are one after another.
 */
const placePairs =
  (bit: number, plane: number): Place =>
  (from, at, into, start, within) => {
    const to = start + plane + within
    for (let half = 0; half < 2; half++) {
      let pairs = 0
      for (let word = 0; word < 4; word++)
        pairs |= ((from[at + 4 * half + word]! >>> bit) & lowPairs) << (2 * word)
      into[to + half * panelRows] = pairs
    }
  }

const lowPairs = 0x03030303

/** One bit of each level: for each word the four of a row, after those of the row before. */
const placeOnes =
  (bit: number, plane: number): Place =>
  (from, at, into, start, within) => {
    const ones = start + plane + (within >> 3)
    const shift = wordLevels * (within & 7)
    for (let word = 0; word < wordsPerRow; word++) {
      const bits = (from[at + word]! >>> bit) & 0x01010101
      const together = (bits | (bits >>> 7) | (bits >>> 14) | (bits >>> 21)) & 15
      const to = ones + 2 * word
      into[to] = (into[to]! & ~(15 << shift)) | (together << shift)
    }
  }

const placeBoth =
  (first: Place, second: Place): Place =>
  (...place) => {
    first(...place)
    second(...place)
  }

const placeEightBits: Place = (from, at, into, start, within) => {
  const to = start + within
  for (let word = 0; word < wordsPerRow; word++) into[to + word * panelRows] = from[at + word]!
}

const bytesOf = (bits: LevelBits): number => (panelRows * blockSize * bits) / 8
const wordsOf = (bits: LevelBits): number => bytesOf(bits) / wordLevels

const formats = {
  2: { quantizer: toLevels, place: placePairs(0, 0) },
  3: { quantizer: toLevels, place: placeBoth(placePairs(0, 0), placeOnes(2, wordsOf(2))) },
  4: { quantizer: toLevels, place: placeFourBits },
  5: { quantizer: toLevels, place: placeBoth(placeFourBits, placeOnes(4, wordsOf(4))) },
  6: { quantizer: toLevels, place: placeBoth(placeFourBits, placePairs(4, wordsOf(4))) },
  8: { quantizer: toEightBits, place: placeEightBits },
}

/** Packs a batch of rows into panels; what `scales` takes is part of them. */
const packer = (columns: number, format: PanelFormat, scales: ScaleWriter) => {
  const { quantizer, place } = formats[format.bits]
  const blocks = Math.ceil(columns / blockSize)
  const blockWords = wordsOf(format.bits)
  const blockGroups = blockSize / groupValues(format.bits)
  const words = new Uint32Array((batchRows / panelRows) * blocks * blockWords)
  const row = {
    levels: new Uint8Array(blocks * blockSize),
    scales: new Float32Array(blocks * blockGroups),
    shifts: new Float32Array(blocks * blockGroups),
  }
  const rowWords = new Uint32Array(row.levels.buffer)
  const quantize = quantizer(columns, format)
  const set = (index: number, type: GgmlType, bytes: Uint8Array): void => {
    quantize(type, bytes, row)
    const first = Math.floor(index / panelRows) * blocks
    const within = index % panelRows
    scales.set(first * blockGroups, within, row, type, bytes)
    for (let block = 0; block < blocks; block++)
      place(rowWords, block * wordsPerRow, words, (first + block) * blockWords, within)
  }
  // rows of a panel that the matrix has not are zeros
  const clear = (): void => {
    words.fill(0)
    scales.clear()
  }
  return { words, set, clear }
}

/** Writes codes as the kernels have them: 128 stands for 0. */
const writeCodes = ({ store }: GraphBuilder, codes: Int8Array): StoredWeights => {
  const region = store.reserve(codes.length)
  store.write(
    region,
    0,
    Uint8Array.from(codes, (code) => code + 128),
  )
  return region
}

/** Writes a matrix in panels; returns what the operator has to know of it. */
const writePanels = (
  graph: GraphBuilder,
  matrix: Matrix,
  bits: LevelBits,
): Readonly<Record<string, number>> => {
  const { rows, columns } = matrix
  const format = panelFormat(typesIn(matrix), bits)
  const blocks = Math.ceil(columns / blockSize)
  const groups = blocks * (blockSize / groupValues(bits))
  const panels = Math.ceil(rows / panelRows)
  const levels = graph.store.reserve(panels * blocks * bytesOf(bits))
  const scales = scaleWriter(graph, format, panels * groups, (batchRows / panelRows) * groups)
  const batch = packer(columns, format, scales)
  inBatches(matrix, (first, count) => {
    if (count % panelRows) batch.clear()
    for (let i = 0; i < count; i++) batch.set(i, matrix.typeOf(first + i), matrix.row(first + i))
    const from = first / panelRows
    const filled = Math.ceil(count / panelRows)
    const words = batch.words.subarray(0, filled * blocks * wordsOf(bits))
    graph.store.write(levels, from * blocks * bytesOf(bits), words)
    scales.write(from * groups, filled * groups)
  })
  return {
    ...{ N: rows, K: columns, bits, zero: zeroOf(format) },
    scale_kind: scaleKinds.indexOf(format.scales),
    levels: placeOf(levels),
    ...scales.places,
    ...(format.codes && { codes: placeOf(writeCodes(graph, format.codes)) }),
  }
}

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
  const panels = writePanels(graph, matrix, bits)
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
        ...panels,
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
