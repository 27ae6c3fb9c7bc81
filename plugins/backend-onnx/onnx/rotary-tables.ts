import type { DecoderConfig } from "../architectures/decoder-config.ts"
import type { Rotary } from "../architectures/rotary.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"

/**
 * Cosines and sines of every position. Where long sequences are rotated in another way, theirs are
 * in the rows from `longAfter` on.
 */
export interface RotaryTables {
  readonly cos: Value
  readonly sin: Value
  /** The number of dimensions that are rotated. */
  readonly dimensions: number
}

/** The rows of one way of rotating, behind those that are written already. */
interface RotaryPart {
  readonly rotations: readonly number[]
  readonly positions: number
}

type Config = Pick<DecoderConfig, "rotary" | "contextTokens" | "longAfter">

const rotaryParts = (
  { contextTokens, longAfter }: Config,
  { rotations, longRotations }: Rotary,
): readonly RotaryPart[] => {
  if (longAfter === undefined || !longRotations) return [{ rotations, positions: contextTokens }]
  return [
    { rotations, positions: longAfter },
    { rotations: longRotations, positions: contextTokens },
  ]
}

const writeRotary = (
  graph: GraphBuilder,
  config: Config,
  rotary: Rotary,
  name: string,
): RotaryTables => {
  const { rotations, magnitude = 1 } = rotary
  const parts = rotaryParts(config, rotary)
  const pairs = rotations.length
  const batch = 4096
  const tables = { cos: `cos${name}`, sin: `sin${name}`, dimensions: 2 * pairs }
  const all = parts.reduce((sum, { positions }) => sum + positions, 0)
  for (const [table, wave] of [
    [tables.cos, Math.cos],
    [tables.sin, Math.sin],
  ] as const) {
    const region = graph.weights(table, "float", [all, pairs])
    const values = new Float32Array(Math.min(batch, all) * pairs)
    let written = 0
    for (const part of parts)
      for (let first = 0; first < part.positions; first += batch) {
        const count = Math.min(batch, part.positions - first)
        for (let i = 0; i < count * pairs; i++) {
          const angle = (first + Math.floor(i / pairs)) * part.rotations[i % pairs]!
          values[i] = magnitude * wave(angle)
        }
        graph.store.write(region, written * pairs * 4, values.subarray(0, count * pairs))
        written += count
      }
  }
  return tables
}

/** The tables of each layer; layers that are rotated in the same way share theirs. */
export const rotaryTables = (
  graph: GraphBuilder,
  config: Config,
): readonly (RotaryTables | undefined)[] => {
  const written = new Map<Rotary, RotaryTables>()
  return config.rotary.map((rotary) => {
    if (!rotary) return undefined
    const tables = written.get(rotary) ?? writeRotary(graph, config, rotary, `_${written.size}`)
    written.set(rotary, tables)
    return tables
  })
}
