import type { Attribute, GraphNode, Value } from "./graph-node.ts"

/** The operators that a step may be, in the order of their numbers (kernels/native/steps.cpp). */
const operators = ["BlockMatMul", "CachedAttention", "GatedUnit"]
const [mostInputs, mostOutputs, mostHalves] = [11, 2, 64]

const isStep = ({ op, domain }: GraphNode): boolean => domain === "rakit" && operators.includes(op)

/** Outputs that are halves; all others are floats. */
const halvesOf = ({ op, outputs }: GraphNode): readonly Value[] =>
  op === "CachedAttention" ? outputs.slice(1) : []

/** What joining needs of the graph. */
export interface Joining {
  isConstant(value: Value): boolean
  /** Declares the constant `[steps, wires]`. */
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
const runsOf = (nodes: readonly GraphNode[]): readonly (readonly GraphNode[])[] => {
  const runs: GraphNode[][] = []
  let halves = 0
  for (const node of nodes) {
    const run = runs.at(-1)
    halves += halvesOf(node).length
    if (run && isStep(node) && isStep(run[0]!) && halves <= mostHalves) run.push(node)
    else {
      runs.push([node])
      halves = halvesOf(node).length
    }
  }
  return runs
}

/** Gives each value that only the run reads a slot, which is free again after the last step that reads it. */
const slotsOf = (
  run: readonly GraphNode[],
  isInner: (value: Value) => boolean,
): { readonly slots: ReadonlyMap<Value, number>; readonly count: number } => {
  const lastRead = new Map<Value, number>()
  for (const [step, node] of run.entries())
    for (const value of [...node.outputs, ...node.inputs]) lastRead.set(value, step)
  const slots = new Map<Value, number>()
  const free: number[] = []
  let count = 0
  for (const [step, node] of run.entries()) {
    for (const value of node.outputs.filter(isInner)) slots.set(value, free.pop() ?? count++)
    for (const value of new Set([...node.inputs, ...node.outputs])) {
      const slot = slots.get(value)
      if (slot !== undefined && lastRead.get(value) === step) free.push(slot)
    }
  }
  return { slots, count }
}

const padded = <T>(values: readonly T[], length: number, by: T): readonly T[] => [
  ...values,
  ...Array.from({ length: length - values.length }, () => by),
]

/** The attributes of steps, each with the number of its step. */
const attributesOf = (run: readonly GraphNode[]): Record<string, Attribute> =>
  Object.fromEntries(
    run.flatMap(({ op, attributes }, step) =>
      Object.entries({ ...attributes, operator: operators.indexOf(op) }).map(([name, value]) => [
        `${step}.${name}`,
        value,
      ]),
    ),
  )

/** What a run has from the graph, and what the graph has from it. */
const boundaryOf = (
  run: readonly GraphNode[],
  isReadElsewhere: (value: Value) => boolean,
  { isConstant }: Joining,
) => {
  const made = new Set(run.flatMap(({ outputs }) => outputs))
  const read = new Set(run.flatMap(({ inputs }) => inputs))
  const given = [...read].filter((value) => value !== "" && !made.has(value))
  const changing = given.filter((value) => !isConstant(value))
  const halves = run.flatMap(halvesOf).filter(isReadElsewhere)
  const floats = [...made].filter((value) => isReadElsewhere(value) && !halves.includes(value))
  return {
    inputs: [...changing, ...given.filter(isConstant)],
    changing: changing.length,
    outputs: [...padded(halves, mostHalves, ""), ...floats],
  }
}

const joined = (
  run: readonly GraphNode[],
  isReadElsewhere: (value: Value) => boolean,
  joining: Joining,
): GraphNode => {
  const { inputs, changing, outputs } = boundaryOf(run, isReadElsewhere, joining)
  const { slots, count } = slotsOf(run, (value) => !isReadElsewhere(value))
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
  const lines = run.map((node) => [
    ...wires(node.inputs, mostInputs),
    ...wires(node.outputs, mostOutputs),
  ])
  return {
    op: "Steps",
    name: joining.name(),
    inputs: [joining.wiring(lines), ...inputs],
    outputs,
    attributes: { ...attributesOf(run), steps: run.length, changing, slots: count },
    domain: "rakit",
  }
}

/**
 * Makes one node of nodes of the native kernels that follow each other: its threads are not woken
 * for each of them, and ONNX Runtime has one node to run.
 */
export const joinSteps = (nodes: readonly GraphNode[], joining: Joining): readonly GraphNode[] => {
  const readers = new Map<Value, Set<GraphNode>>()
  for (const node of nodes)
    for (const value of readBy(node)) {
      const known = readers.get(value) ?? new Set()
      readers.set(value, known.add(node))
    }
  return runsOf(nodes).map((run) => {
    if (run.length === 1) return run[0]!
    const inside = new Set(run)
    const isReadElsewhere = (value: Value) =>
      [...(readers.get(value) ?? [])].some((node) => !inside.has(node))
    return joined(run, isReadElsewhere, joining)
  })
}
