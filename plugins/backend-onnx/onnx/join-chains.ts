import type { Attribute, GraphNode, Value } from "./graph-node.ts"

/** The operators of chains, in the order of their numbers (kernels/native/chain.cpp). */
const kinds = ["BlockMatMul", "CachedAttention", "GatedUnit"]
const [mostInputs, mostOutputs, mostHalves] = [11, 2, 64]

const isLink = ({ op, domain }: GraphNode): boolean => domain === "rakit" && kinds.includes(op)

/** Outputs that are halves; all others are floats. */
const halvesOf = ({ op, outputs }: GraphNode): readonly Value[] =>
  op === "CachedAttention" ? outputs.slice(1) : []

/** What joining needs of the graph. */
export interface Joining {
  isConstant(value: Value): boolean
  /** Declares the constant `[operators, wires]`. */
  wiring(lines: readonly (readonly number[])[]): Value
  /** A name for a node. */
  name(): string
}

/** All values that a node reads, also those that its branches take from the graph around them. */
const readBy = ({ inputs, attributes = {} }: GraphNode): readonly Value[] => [
  ...inputs,
  ...Object.values(attributes).flatMap((value) =>
    typeof value === "object" && "nodes" in value
      ? [...value.nodes.flatMap(readBy), value.result]
      : [],
  ),
]

/** Neighbours that can be one node, and others alone. */
const chainsOf = (nodes: readonly GraphNode[]): readonly (readonly GraphNode[])[] => {
  const chains: GraphNode[][] = []
  let halves = 0
  for (const node of nodes) {
    const chain = chains.at(-1)
    halves += halvesOf(node).length
    if (chain && isLink(node) && isLink(chain[0]!) && halves <= mostHalves) chain.push(node)
    else {
      chains.push([node])
      halves = halvesOf(node).length
    }
  }
  return chains
}

/** Gives each value that only the chain reads a slot, which is free again after the last operator that reads it. */
const slotsOf = (
  chain: readonly GraphNode[],
  isInner: (value: Value) => boolean,
): { readonly slots: ReadonlyMap<Value, number>; readonly count: number } => {
  const lastRead = new Map<Value, number>()
  for (const [index, node] of chain.entries())
    for (const value of [...node.outputs, ...node.inputs]) lastRead.set(value, index)
  const slots = new Map<Value, number>()
  const free: number[] = []
  let count = 0
  for (const [index, node] of chain.entries()) {
    for (const value of node.outputs.filter(isInner)) slots.set(value, free.pop() ?? count++)
    for (const value of new Set([...node.inputs, ...node.outputs])) {
      const slot = slots.get(value)
      if (slot !== undefined && lastRead.get(value) === index) free.push(slot)
    }
  }
  return { slots, count }
}

const padded = <T>(values: readonly T[], length: number, by: T): readonly T[] => {
  if (values.length > length) throw new Error(`${values.length} values, ${length} at most`)
  return [...values, ...Array.from({ length: length - values.length }, () => by)]
}

/** The attributes of operators, each with the number of its operator. */
const attributesOf = (chain: readonly GraphNode[]): Record<string, Attribute> =>
  Object.fromEntries(
    chain.flatMap(({ op, attributes }, index) =>
      Object.entries({ ...attributes, kind: kinds.indexOf(op) }).map(([name, value]) => [
        `${index}.${name}`,
        value,
      ]),
    ),
  )

/** What a chain takes from the graph, and what the graph takes from it. */
const boundaryOf = (
  chain: readonly GraphNode[],
  isReadElsewhere: (value: Value) => boolean,
  { isConstant }: Joining,
) => {
  const made = new Set(chain.flatMap(({ outputs }) => outputs))
  const read = new Set(chain.flatMap(({ inputs }) => inputs))
  const given = [...read].filter((value) => value !== "" && !made.has(value))
  const changing = given.filter((value) => !isConstant(value))
  const halves = chain.flatMap(halvesOf).filter(isReadElsewhere)
  const floats = [...made].filter((value) => isReadElsewhere(value) && !halves.includes(value))
  return {
    inputs: [...changing, ...given.filter(isConstant)],
    changing: changing.length,
    outputs: [...padded(halves, mostHalves, ""), ...floats],
  }
}

const joined = (
  chain: readonly GraphNode[],
  isReadElsewhere: (value: Value) => boolean,
  joining: Joining,
): GraphNode => {
  const { inputs, changing, outputs } = boundaryOf(chain, isReadElsewhere, joining)
  const { slots, count } = slotsOf(chain, (value) => !isReadElsewhere(value))
  const places = new Map<Value, number>([
    ...inputs.map((value, index) => [value, index] as const),
    ...[...slots].map(([value, slot]) => [value, inputs.length + slot] as const),
    ...outputs.map((value, index) => [value, inputs.length + count + index] as const),
  ])
  places.set("", -1)
  const wires = (values: readonly Value[], length: number) =>
    padded(
      values.map((value) => places.get(value)!),
      length,
      -1,
    )
  const lines = chain.map((node) => [
    ...wires(node.inputs, mostInputs),
    ...wires(node.outputs, mostOutputs),
  ])
  return {
    op: "Chain",
    name: joining.name(),
    inputs: [joining.wiring(lines), ...inputs],
    outputs,
    attributes: { ...attributesOf(chain), operators: chain.length, changing, slots: count },
    domain: "rakit",
  }
}

/**
 * Makes one node of nodes of the native kernels that follow each other: its threads are not woken
 * for each of them, and ONNX Runtime has one node to chain.
 */
export const joinChains = (nodes: readonly GraphNode[], joining: Joining): readonly GraphNode[] => {
  const readers = new Map<Value, Set<GraphNode>>()
  for (const node of nodes)
    for (const value of readBy(node).filter((name) => name !== "")) {
      const known = readers.get(value) ?? new Set()
      readers.set(value, known.add(node))
    }
  return chainsOf(nodes).map((chain) => {
    if (chain.length === 1) return chain[0]!
    const inside = new Set(chain)
    const isReadElsewhere = (value: Value) =>
      [...(readers.get(value) ?? [])].some((node) => !inside.has(node))
    return joined(chain, isReadElsewhere, joining)
  })
}
