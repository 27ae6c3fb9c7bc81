import { toHalves } from "../weights/float16.ts"
import { groupValues } from "../weights/ggml-blocks.ts"
import type { GgmlType } from "../weights/ggml-types.ts"
import type { GraphBuilder } from "./graph-builder.ts"
import { type PanelFormat, panelRows, unitValues } from "./panel-format.ts"
import { regionAlignment, type StoredWeights } from "./weight-store.ts"

/** A row's scales and shifts, one of each for a group. */
export interface RowScales {
  readonly scales: Float32Array
  readonly shifts: Float32Array
}

/** Writes the scales and shifts of a matrix, a batch of rows at a time. */
export interface ScaleWriter {
  /** Takes those of a row of the batch, whose first group in it, over all panels, is `first`. */
  set(first: number, within: number, row: RowScales, type: GgmlType, bytes: Uint8Array): void
  /** Makes those of all rows of the batch 0. */
  clear(): void
  /** Writes those of the batch's first groups, from group `from` of the matrix on. */
  write(from: number, groups: number): void
  /** Where the kernels find them. */
  readonly places: { readonly scales: number; readonly shifts?: number }
}

/** A place in the store as the operator's attributes have it. */
export const placeOf = ({ offset }: StoredWeights): number => offset / regionAlignment

/** Each as a number of its own: `[panels, groups, 16]` scales, and as many shifts. */
const numbersWriter = (
  { store }: GraphBuilder,
  { scales: kind, isShifted }: PanelFormat,
  panelGroups: number,
  batchGroups: number,
): ScaleWriter => {
  const reserve = () => {
    const region = store.reserve(panelGroups * panelRows * (kind === "halves" ? 2 : 4))
    return { region, batch: new Float32Array(batchGroups * panelRows) }
  }
  const [scales, shifts] = [reserve(), isShifted ? reserve() : undefined]
  const set = (first: number, within: number, row: RowScales) => {
    for (let group = 0; group < row.scales.length; group++) {
      const at = (first + group) * panelRows + within
      scales.batch[at] = row.scales[group]!
      if (shifts) shifts.batch[at] = row.shifts[group]!
    }
  }
  const write = (from: number, groups: number) => {
    for (const { region, batch } of shifts ? [scales, shifts] : [scales]) {
      const values = batch.subarray(0, groups * panelRows)
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
 * In steps: `[panels, columns / 256]` records of 16 units of scales and 16 of shifts, as halves, then for
 * each group 16 numbers of steps of scales and 16 of shifts, as int8. A product of such numbers is
 * exact in a float, so scales are what the file has.
 */
const stepsWriter = (
  { store }: GraphBuilder,
  { bits, isShifted }: PanelFormat,
  panelGroups: number,
  batchGroups: number,
): ScaleWriter => {
  const parts = isShifted ? 2 : 1
  const superGroups = unitValues / groupValues(bits)
  const header = 2 * parts * panelRows
  const recordBytes = header + superGroups * parts * panelRows
  const region = store.reserve((panelGroups / superGroups) * recordBytes)
  const batch = new Uint8Array((batchGroups / superGroups) * recordBytes)
  const halves = new Uint16Array(batch.buffer)
  const units = new Float32Array(parts)
  const unitHalves = new Uint16Array(parts)
  const setSteps = (at: number, row: RowScales, group: number) => {
    const values = [row.scales[group]!, row.shifts[group]!]
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
    for (let group = 0; group < row.scales.length; group++) {
      const record = Math.floor((first + group) / superGroups) * recordBytes
      const inRecord = group % superGroups
      if (inRecord === 0) setUnits(record + 2 * within, type, bytes, group / superGroups)
      setSteps(record + header + inRecord * parts * panelRows + within, row, group)
    }
  }
  const write = (from: number, groups: number) =>
    store.write(
      region,
      (from / superGroups) * recordBytes,
      batch.subarray(0, (groups / superGroups) * recordBytes),
    )
  const place = placeOf(region)
  return {
    set,
    write,
    clear: () => batch.fill(0),
    places: { scales: place, ...(isShifted && { shifts: place }) },
  }
}

/** `panelGroups`, `batchGroups`: groups of all panels, of the matrix and of a batch. */
export const scaleWriter = (
  graph: GraphBuilder,
  format: PanelFormat,
  panelGroups: number,
  batchGroups: number,
): ScaleWriter =>
  (format.scales === "steps" ? stepsWriter : numbersWriter)(graph, format, panelGroups, batchGroups)
