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

/**
 * Tables with a row for each token of a pass, in which each section of its pairs turns by another of
 * its `positions [sections, B, S]`, and the rows of its tokens, `[B, S]`.
 */
export const sectioned = (
  graph: GraphBuilder,
  tables: readonly (RotaryTables | undefined)[],
  sections: readonly number[],
  positions: Value,
): { readonly rotary: readonly (RotaryTables | undefined)[]; readonly positions: Value } => {
  const along = (axis: number) =>
    graph.node("Reshape", [
      graph.node("Gather", [positions, graph.ints(axis)], { attributes: { axis: 0 } }),
      graph.ints([-1]),
    ])
  const axes = sections.map((_, axis) => along(axis))
  const mixed = (table: Value): Value => {
    let from = 0
    const parts = sections.map((pairs, axis) => {
      const bounds = [graph.ints([from]), graph.ints([from + pairs]), graph.ints([1])]
      from += pairs
      const part = graph.node("Slice", [table, ...bounds])
      return graph.node("Gather", [part, axes[axis]!], { attributes: { axis: 0 } })
    })
    return graph.concat(parts, 1)
  }
  const made = new Map<RotaryTables, RotaryTables>()
  const rotary = tables.map((own) => {
    if (!own) return undefined
    const known = made.get(own) ?? { ...own, cos: mixed(own.cos), sin: mixed(own.sin) }
    made.set(own, known)
    return known
  })
  const shape = graph.node("Shape", [positions], { attributes: { start: 1 } })
  const count = graph.node("Shape", [axes[0]!])
  const first = graph.node("Reshape", [count, graph.ints([])])
  const rows = graph.node("Range", [graph.ints(0), first, graph.ints(1)])
  return { rotary, positions: graph.node("Reshape", [rows, shape]) }
}
