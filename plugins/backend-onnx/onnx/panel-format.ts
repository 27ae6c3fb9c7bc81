import { groupValues } from "../weights/ggml-blocks.ts"
import { type GgmlType, type Levels, levelsOf } from "../weights/ggml-types.ts"
import { needsShifts } from "./int4-blocks.ts"
import { needsZeros } from "./int8-blocks.ts"

/** Bits of a level; only types of 2, 3, 5 or 6 bits are kept in so many. */
export type LevelBits = Levels["bits"] | 8

/** Rows whose levels lie together: the outputs that the native kernel computes at once. */
export const panelRows = 16
/** Values of a row that share the unit of a scale in steps. */
export const unitValues = 256

/**
 * How scales and shifts are kept: as floats, as halves, or in steps, as whole numbers of 8 bits times
 * a half that `unitValues` share. In the order of the kernels' numbers (block-product.h).
 */
export const scaleKinds = ["floats", "halves", "steps"] as const
export type ScaleKind = (typeof scaleKinds)[number]

/** How the native kernels have a matrix; 4 bits may stand for codes. */
export interface PanelFormat {
  readonly bits: LevelBits
  readonly codes: Int8Array | undefined
  readonly isShifted: boolean
  readonly scales: ScaleKind
}

/** The levels of a type that are kept as they are; 8 bits keep those of types of 5. */
export const keptLevels = (
  type: GgmlType,
  { bits, codes }: Pick<PanelFormat, "bits" | "codes">,
): Levels | undefined => levelsOf(type, bits === 8 ? 5 : bits, codes)

const needsShift = (type: GgmlType, bits: LevelBits, codes: Int8Array | undefined): boolean => {
  if (bits === 4) return needsShifts(type, codes)
  const kept = keptLevels(type, { bits, codes })
  return kept ? kept.hasMinimums : needsZeros(type)
}

/** The level, or the code, that stands for 0 before a shift. */
export const zeroOf = ({ bits, codes, isShifted }: PanelFormat): number => {
  if (bits === 8 || codes) return 128
  return isShifted ? 0 : 2 ** (bits - 1)
}

const scalesOf = (type: GgmlType, bits: LevelBits, codes: Int8Array | undefined): ScaleKind => {
  if (bits === 8 && type.name === "Q8_0") return "halves"
  const levels = keptLevels(type, { bits, codes })
  if (!levels) return "floats"
  return levels.units ? "steps" : "halves"
}

const codesOf = (types: readonly GgmlType[]): Int8Array | undefined => {
  const codes = types[0]?.levels?.codes
  return types.every(({ levels }) => levels?.codes === codes) ? codes : undefined
}

/** How a matrix with rows of these types is kept. */
export const panelFormat = (types: readonly GgmlType[], bits: LevelBits): PanelFormat => {
  const codes = bits === 4 ? codesOf(types) : undefined
  const [first] = types
  const shifted = types.map((type) => needsShift(type, bits, codes))
  const scales = first ? scalesOf(first, bits, codes) : "floats"
  // the shift of a row that would need none, among others, may be beyond halves
  const areAlike =
    types.every((type) => scalesOf(type, bits, codes) === scales) && new Set(shifted).size === 1
  return { bits, codes, isShifted: shifted.includes(true), scales: areAlike ? scales : "floats" }
}

/** Bytes in memory of a weight: its level, its share of its group's scale and shift. */
export const panelBytesPerWeight = ({ bits, isShifted, scales }: PanelFormat): number => {
  const group = groupValues(bits)
  const bytes = { floats: 4, halves: 2, steps: 1 + (2 * group) / unitValues }[scales]
  return bits / 8 + ((isShifted ? 2 : 1) * bytes) / group
}
