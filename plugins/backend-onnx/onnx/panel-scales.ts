import { toHalves } from "../weights/float16.ts"
import type { GgmlType } from "../weights/ggml-types.ts"
import type { GraphBuilder } from "./graph-builder.ts"
import { type PanelFormat, panelRows, superBlocks } from "./panel-format.ts"
import { regionAlignment, type StoredWeights } from "./weight-store.ts"

/** A row's scales and shifts, one of each for a block. */
export interface RowScales {
  readonly scales: Float32Array
  readonly shifts: Float32Array
}

/** Writes the scales and shifts of a matrix, a batch of rows at a time. */
export interface ScaleWriter {
  /** Takes those of a row of the batch, whose first block in it, over all panels, is `first`. */
  set(first: number, within: number, row: RowScales, type: GgmlType, bytes: Uint8Array): void
  /** Makes those of all rows of the batch 0. */
  clear(): void
  /** Writes those of the batch's first blocks, from block `from` of the matrix on. */
  write(from: number, blocks: number): void
  /** Where the kernels find them. */
  readonly places: { readonly scales: number; readonly shifts?: number }
}

/** A place in the store as the operator's attributes have it. */
export const placeOf = ({ offset }: StoredWeights): number => offset / regionAlignment

/** Each as a number of its own: `[panels, blocks, 16]` scales, and as many shifts. */
const numbersWriter = (
  { store }: GraphBuilder,
  { scales: kind, isShifted }: PanelFormat,
  panelBlocks: number,
  batchBlocks: number,
): ScaleWriter => {
  const reserve = () => {
    const region = store.reserve(panelBlocks * panelRows * (kind === "halves" ? 2 : 4))
    return { region, batch: new Float32Array(batchBlocks * panelRows) }
  }
  const [scales, shifts] = [reserve(), isShifted ? reserve() : undefined]
  const set = (first: number, within: number, row: RowScales) => {
    for (let block = 0; block < row.scales.length; block++) {
      const at = (first + block) * panelRows + within
      scales.batch[at] = row.scales[block]!
      if (shifts) shifts.batch[at] = row.shifts[block]!
    }
  }
  const write = (from: number, blocks: number) => {
    for (const { region, batch } of shifts ? [scales, shifts] : [scales]) {
      const values = batch.subarray(0, blocks * panelRows)
      const stored = kind === "halves" ? new Uint16Array(values.length) : values
      if (stored instanceof Uint16Array) toHalves(values, stored)
      store.write(region, from * panelRows * stored.BYTES_PER_ELEMENT, stored)
    }
  }
  return {
    set,
    write,
    clear: () => {
      scales.batch.fill(0)
      shifts?.batch.fill(0)
    },
    places: { scales: placeOf(scales.region), ...(shifts && { shifts: placeOf(shifts.region) }) },
  }
}

/**
 * In steps: `[panels, blocks / 8]` records of 16 units of scales and 16 of shifts, as halves, then for
 * each block 16 numbers of steps of scales and 16 of shifts, as int8. A product of such numbers is
 * exact in a float, so scales are what the file has.
 */
const stepsWriter = (
  { store }: GraphBuilder,
  { isShifted }: PanelFormat,
  panelBlocks: number,
  batchBlocks: number,
): ScaleWriter => {
  const parts = isShifted ? 2 : 1
  const header = 2 * parts * panelRows
  const recordBytes = header + superBlocks * parts * panelRows
  const region = store.reserve((panelBlocks / superBlocks) * recordBytes)
  const batch = new Uint8Array((batchBlocks / superBlocks) * recordBytes)
  const halves = new Uint16Array(batch.buffer)
  const units = new Float32Array(parts)
  const unitHalves = new Uint16Array(parts)
  const setSteps = (at: number, row: RowScales, block: number) => {
    const values = [row.scales[block]!, row.shifts[block]!]
    for (let part = 0; part < parts; part++)
      batch[at + part * panelRows] = units[part] ? values[part]! / units[part]! : 0
  }
  const setUnits = (at: number, type: GgmlType, bytes: Uint8Array, n: number) => {
    const { scale, minimum } = type.levels!.units!(bytes, n)
    units.set(isShifted ? [scale, minimum] : [scale])
    toHalves(units, unitHalves)
    for (let part = 0; part < parts; part++) halves[at / 2 + part * panelRows] = unitHalves[part]!
  }
  const set: ScaleWriter["set"] = (first, within, row, type, bytes) => {
    for (let block = 0; block < row.scales.length; block++) {
      const record = Math.floor((first + block) / superBlocks) * recordBytes
      const inRecord = block % superBlocks
      if (inRecord === 0) setUnits(record + 2 * within, type, bytes, block / superBlocks)
      setSteps(record + header + inRecord * parts * panelRows + within, row, block)
    }
  }
  const write = (from: number, blocks: number) =>
    store.write(
      region,
      (from / superBlocks) * recordBytes,
      batch.subarray(0, (blocks / superBlocks) * recordBytes),
    )
  const place = placeOf(region)
  return {
    set,
    write,
    clear: () => batch.fill(0),
    places: { scales: place, ...(isShifted && { shifts: place }) },
  }
}

/** `panelBlocks`, `batchBlocks`: blocks of all panels, of the matrix and of a batch. */
export const scaleWriter = (
  graph: GraphBuilder,
  format: PanelFormat,
  panelBlocks: number,
  batchBlocks: number,
): ScaleWriter =>
  (format.scales === "steps" ? stepsWriter : numbersWriter)(graph, format, panelBlocks, batchBlocks)
