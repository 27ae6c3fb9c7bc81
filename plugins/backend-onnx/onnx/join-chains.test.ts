import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { GraphNode, Value } from "./graph-node.ts"
import { joinChains } from "./join-chains.ts"

const node = (
  op: string,
  inputs: readonly Value[],
  outputs: readonly Value[],
  domain?: "rakit",
): GraphNode => ({
  ...{ op, inputs, outputs, name: outputs[0]!, attributes: { of: outputs[0]! } },
  ...(domain && { domain }),
})
const product = (inputs: readonly Value[], outputs: readonly Value[]) =>
  node("BlockMatMul", inputs, outputs, "rakit")
const attention = (inputs: readonly Value[], outputs: readonly Value[]) =>
  node("CachedAttention", inputs, outputs, "rakit")

/** Joins nodes; constants are those that begin with "w". */
const join = (nodes: readonly GraphNode[]) => {
  const wirings = new Map<Value, readonly (readonly number[])[]>()
  const joined = joinChains(nodes, {
    isConstant: (value) => value.startsWith("w"),
    wiring: (lines) => {
      const name = `wiring${wirings.size}`
      wirings.set(name, lines)
      return name
    },
    name: () => "n",
  })
  return { joined, wirings }
}

type Computed = (op: string, output: number, inputs: readonly string[]) => string
const term: Computed = (op, output, inputs) => `${op}${output}(${inputs})`

/** What each value of the graph is, as a term. */
const valuesOf = (
  nodes: readonly GraphNode[],
  wirings: ReadonlyMap<Value, readonly (readonly number[])[]>,
): ReadonlyMap<Value, string> => {
  const values = new Map<Value, string>()
  const termOf = (name: Value) => (name === "" ? "" : (values.get(name) ?? name))
  const runChain = ({ inputs: [wiring, ...inputs], outputs, attributes }: GraphNode) => {
    const places = inputs.map(termOf)
    const outputsFrom = inputs.length + (attributes!.slots as number)
    for (const [index, wires] of wirings.get(wiring!)!.entries()) {
      const op = ["BlockMatMul", "CachedAttention", "GatedUnit"][
        attributes![`${index}.kind`] as number
      ]
      const own = attributes![`${index}.of`]
      const read = wires.slice(0, 11).map((place) => (place < 0 ? "" : places[place]!))
      for (const [output, place] of wires.slice(11).entries())
        if (place >= 0) places[place] = term(`${op} ${own}`, output, read)
    }
    for (const [at, output] of outputs.entries())
      if (output !== "") values.set(output, places[outputsFrom + at]!)
  }
  for (const each of nodes) {
    if (each.op === "Chain") {
      runChain(each)
      continue
    }
    const read = Array.from({ length: 11 }, (_, i) => termOf(each.inputs[i] ?? ""))
    for (const [output, name] of each.outputs.entries())
      values.set(name, term(`${each.op} ${each.attributes!.of}`, output, read))
  }
  return values
}

describe("neighbours of the native kernels", () => {
  const layer = [
    product(["x", "w1", "w2", "", "w3"], ["qkv"]),
    attention(["qkv", "past", "lengths", "rows"], ["attended", "fresh"]),
    product(["attended", "w4", "w5"], ["out"]),
    product(["x", "w6", "w7", "", "w8", "out"], ["gates", "sum"]),
    product(["gates", "w9", "w10"], ["down"]),
  ]

  test("are one node, whose other values are in slots", () => {
    const after = [node("Add", ["sum", "down"], ["y"]), node("Concat", ["fresh"], ["kv"])]
    const { joined, wirings } = join([...layer, ...after])
    expect(joined.map(({ op }) => op)).toEqual(["Chain", "Add", "Concat"])
    const [chain] = joined
    const constants = Array.from({ length: 10 }, (_, i) => `w${i + 1}`)
    expect(chain!.inputs).toEqual(["wiring0", "x", "past", "lengths", "rows", ...constants])
    expect(chain!.outputs.filter((value) => value !== "")).toEqual(["fresh", "sum", "down"])
    expect(chain!.outputs.slice(-2)).toEqual(["sum", "down"])
    expect(chain!.attributes).toMatchObject({
      ...{ operators: 5, changing: 4, slots: 2 },
      ...{ "0.kind": 0, "1.kind": 1, "0.of": "qkv", "4.of": "down" },
    })
    const known = valuesOf([...layer, ...after], wirings)
    for (const value of ["y", "kv"])
      expect(valuesOf(joined, wirings).get(value)).toBe(known.get(value))
  })

  test("are apart where another node stands between them, or when they have too many halves", () => {
    const apart = [layer[0]!, node("Add", ["qkv", "w"], ["z"]), product(["z", "w1"], ["y"])]
    expect(join(apart).joined).toEqual(apart)
    const many = Array.from({ length: 130 }, (_, i) => attention(["x"], [`a${i}`, `h${i}`]))
    const readers = many.map((_, i) => node("Add", [`a${i}`, `h${i}`], [`y${i}`]))
    const { joined } = join([...many, ...readers])
    expect(
      joined.filter(({ op }) => op === "Chain").map(({ attributes }) => attributes!.operators),
    ).toEqual([64, 64, 2])
  })

  test("keep what a branch reads", () => {
    const branch = { nodes: [node("Add", ["sum", "w"], ["b"])], result: "b" }
    const either = { ...node("If", ["condition"], ["y"]), attributes: { then_branch: branch } }
    expect(join([...layer, either]).joined[0]!.outputs).toContain("sum")
  })

  test("whatever the graph: every value is what it was", () => {
    const operator = fc.constantFrom("BlockMatMul", "CachedAttention", "GatedUnit", "Add")
    const drawn = fc.array(
      fc.record({
        op: operator,
        reads: fc.array(fc.nat(12), { maxLength: 11 }),
        isPair: fc.boolean(),
      }),
      { maxLength: 40 },
    )
    fc.assert(
      fc.property(drawn, (steps) => {
        const known: Value[] = ["x", "y", "w1", "w2", ""]
        const nodes = steps.map(({ op, reads, isPair }, step) => {
          const inputs = reads.map((back) => known.at(-1 - (back % known.length))!)
          const outputs = isPair && op !== "Add" ? [`a${step}`, `b${step}`] : [`a${step}`]
          known.push(...outputs)
          return node(op, inputs, outputs, op === "Add" ? undefined : "rakit")
        })
        const { joined, wirings } = join(nodes)
        const [before, after] = [valuesOf(nodes, wirings), valuesOf(joined, wirings)]
        for (const [value, found] of after) expect(found).toBe(before.get(value))
        for (const { op, inputs } of joined)
          for (const value of op === "Chain" ? inputs.slice(1) : inputs)
            expect(value === "" || !before.has(value) || after.has(value)).toBe(true)
      }),
    )
  })
})
