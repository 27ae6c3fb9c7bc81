import {
  type Attribute,
  type ElementType,
  elementTypes,
  type GraphNode,
  type NodeOptions,
  nodeProto,
  type Value,
} from "./graph-node.ts"
import { joinChains } from "./join-chains.ts"
import { ProtobufWriter } from "./protobuf.ts"
import type { StoredWeights, WeightStore } from "./weight-store.ts"

const elementBytes = { float: 4, uint8: 1, int8: 1, uint16: 2, int64: 8, float16: 2 } as const

export type { Attribute, ElementType, Value }

/** What a graph is built for: ONNX Runtime has other operators for each. */
export type Target = "cpu" | "gpu"

const wholeFile = "whole_file"
const lastTwoSwapped = { 2: [1, 0], 3: [0, 2, 1], 4: [0, 1, 3, 2] } as const

const valueInfo = (
  name: string,
  type: ElementType,
  shape: readonly (number | string)[],
): ProtobufWriter => {
  const dimensions = new ProtobufWriter()
  for (const size of shape)
    dimensions.message(
      1,
      typeof size === "number"
        ? new ProtobufWriter().int(1, size)
        : new ProtobufWriter().text(2, size),
    )
  const tensor = new ProtobufWriter().int(1, elementTypes[type]).message(2, dimensions)
  return new ProtobufWriter().text(1, name).message(2, new ProtobufWriter().message(1, tensor))
}

/**
 * Writes an ONNX model (onnx.proto3 of onnx/onnx; IR 10, opset 17). Large tensors go into the
 * weight store.
 */
export class GraphBuilder {
  readonly store: WeightStore
  readonly target: Target
  /** Whether it may have nodes of the native kernels, which run on the CPU. */
  readonly kernels: boolean
  private usesKernels = false
  private nodes: GraphNode[] = []
  private readonly casts: GraphNode[] = []
  private readonly initializers: ProtobufWriter[] = []
  private readonly inputs: ProtobufWriter[] = []
  private readonly outputs: ProtobufWriter[] = []
  private readonly constants = new Map<string, Value>()
  private readonly constantNames = new Set<Value>()
  private fresh = 0

  constructor(store: WeightStore, target: Target = "cpu", kernels = false) {
    this.store = store
    this.target = target
    this.kernels = kernels && target === "cpu"
  }

  input(name: Value, type: ElementType, shape: readonly (number | string)[]): Value {
    this.inputs.push(valueInfo(name, type, shape))
    return name
  }

  /** Makes `value` an output of the graph under `name`. */
  output(name: Value, value: Value, type: ElementType, shape: readonly (number | string)[]): void {
    this.outputs.push(valueInfo(name, type, shape))
    this.nodes.push({ op: "Identity", name: `out_${name}`, inputs: [value], outputs: [name] })
  }

  nodeWith(
    op: string,
    inputs: readonly Value[],
    outputs: readonly Value[],
    options: NodeOptions = {},
  ): readonly Value[] {
    this.usesKernels ||= options.domain === "rakit"
    this.nodes.push({ op, name: this.name(`n_${op}`), inputs, outputs, ...options })
    return outputs
  }

  node(op: string, inputs: readonly Value[], options: NodeOptions = {}): Value {
    return this.nodeWith(op, inputs, [this.name(op)], options)[0]!
  }

  concat(parts: readonly Value[], axis: number): Value {
    return this.node("Concat", parts, { attributes: { axis } })
  }

  /** Integers or booleans as floats. */
  toFloat(value: Value): Value {
    return this.node("Cast", [value], { attributes: { to: elementTypes.float } })
  }

  /** Pieces along an axis, of the given sizes, under the names `parts`. */
  split(value: Value, sizes: Value, parts: readonly Value[], axis: number): readonly Value[] {
    return this.nodeWith("Split", [value, sizes], parts, { attributes: { axis } })
  }

  /**
   * A node of a com.microsoft contrib operator (docs/ContribOperators.md of microsoft/onnxruntime).
   */
  fused(
    op: string,
    inputs: readonly Value[],
    attributes: Readonly<Record<string, Attribute>> = {},
  ): Value {
    return this.node(op, inputs, { attributes, domain: "com.microsoft" })
  }

  /**
   * `a` times `b`, times `alpha`. `transposed`: the number of axes of `b`, whose last two are swapped
   * first.
   */
  matmul(
    a: Value,
    b: Value,
    { transposed, alpha }: { readonly transposed?: 2 | 3 | 4; readonly alpha?: number } = {},
  ): Value {
    if (this.target === "cpu")
      return this.fused("FusedMatMul", [a, b], {
        ...(transposed !== undefined && { transB: 1 }),
        ...(alpha !== undefined && { alpha: { float: alpha } }),
      })
    // FusedMatMul is no operator of the GPU's
    const swapped =
      transposed === undefined
        ? b
        : this.node("Transpose", [b], { attributes: { perm: lastTwoSwapped[transposed] } })
    const product = this.node("MatMul", [a, swapped])
    return alpha === undefined ? product : this.node("Mul", [product, this.floats(alpha)])
  }

  /** Either of two float values, by a boolean scalar: only the nodes of that branch are run. */
  either(condition: Value, whenTrue: () => Value, whenFalse: () => Value): Value {
    const outer = this.nodes
    const branchOf = (build: () => Value) => {
      this.nodes = []
      const result = build()
      return { nodes: this.nodes, result }
    }
    const branches = { then_branch: branchOf(whenTrue), else_branch: branchOf(whenFalse) }
    this.nodes = outer
    const output = this.name("If")
    this.nodes.push({
      ...{ op: "If", name: this.name("n_If"), inputs: [condition], outputs: [output] },
      attributes: branches,
    })
    return output
  }

  name(prefix: string): Value {
    return `${prefix}_${this.fresh++}`
  }

  /** A one-dimensional int64 constant, or a scalar for a bare number. */
  ints(values: readonly number[] | number): Value {
    const list = typeof values === "number" ? [values] : values
    return this.inline(
      "int64",
      typeof values === "number" ? [] : [list.length],
      BigInt64Array.from(list, BigInt),
    )
  }

  floats(values: readonly number[] | number): Value {
    const list = typeof values === "number" ? [values] : values
    return this.inline(
      "float",
      typeof values === "number" ? [] : [list.length],
      Float32Array.from(list),
    )
  }

  /** A scalar, the zero point of a quantization. */
  zeroPoint(value: number): Value {
    return this.inline("uint8", [], Uint8Array.of(value))
  }

  private inline(type: ElementType, shape: readonly number[], values: ArrayBufferView): Value {
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength)
    const key = `${type}[${shape}]${bytes.toString("base64")}`
    const known = this.constants.get(key)
    if (known) return known
    const name = this.name("c")
    this.constants.set(key, name)
    this.initializers.push(this.tensor(name, type, shape).bytes(9, bytes))
    return name
  }

  private tensor(name: Value, type: ElementType, shape: readonly number[]): ProtobufWriter {
    this.constantNames.add(name)
    const proto = new ProtobufWriter()
    for (const size of shape) proto.int(1, size)
    return proto.int(2, elementTypes[type]).text(8, name)
  }

  /** Declares a large constant, to be filled through the store. */
  weights(name: Value, type: ElementType, shape: readonly number[]): StoredWeights {
    const region = this.store.reserve(shape.reduce((a, b) => a * b, elementBytes[type]))
    this.initializers.push(this.external(name, type, shape, region))
    return region
  }

  private external(
    name: Value,
    type: ElementType,
    shape: readonly number[],
    { offset, bytes }: StoredWeights,
  ): ProtobufWriter {
    const proto = this.tensor(name, type, shape)
    const place = { location: this.store.fileName, offset, length: bytes }
    for (const [key, value] of Object.entries(place))
      proto.message(13, new ProtobufWriter().text(1, key).text(2, String(value)))
    return proto.int(14, 1)
  }

  /**
   * The bytes of the store's whole file, for operators that are given places in it: ONNX Runtime
   * maps each constant on its own, and what is mapped in one piece may have large pages.
   */
  wholeFile(): Value {
    this.constantNames.add(wholeFile)
    return wholeFile
  }

  /**
   * Declares a large constant of 16 bits, to be filled through the store, and its values as floats,
   * which are made of it in every run.
   */
  halves(shape: readonly number[]): { readonly region: StoredWeights; readonly value: Value } {
    const name = this.name("h")
    const region = this.weights(name, "float16", shape)
    // what is an input with a default is no constant to ONNX Runtime, which would keep the floats of
    // a constant in memory
    this.input(name, "float16", shape)
    this.constantNames.delete(name)
    const value = this.name("Cast")
    this.casts.push({
      ...{ op: "Cast", name: this.name("n_Cast"), inputs: [name], outputs: [value] },
      attributes: { to: elementTypes.float },
    })
    return { region, value }
  }

  /** Nodes of the native kernels that follow each other become one. */
  toBytes(): Buffer {
    const nodes = joinChains(this.nodes, {
      isConstant: (value) => this.constantNames.has(value),
      wiring: (lines) =>
        this.inline(
          "int64",
          [lines.length, lines[0]!.length],
          BigInt64Array.from(lines.flat(), BigInt),
        ),
      name: () => this.name("n_Chain"),
    })
    const graph = new ProtobufWriter()
    // of the nodes that an operator waits for, ONNX Runtime runs later ones of this list first; so
    // each of these runs right before its operator, and not all of them before the first one
    for (const node of this.casts) graph.message(1, nodeProto(node))
    for (const node of nodes) graph.message(1, nodeProto(node))
    graph.text(2, "rakit")
    for (const initializer of this.initializers) graph.message(5, initializer)
    if (this.constantNames.has(wholeFile)) {
      const bytes = this.store.size
      graph.message(5, this.external(wholeFile, "uint8", [bytes], { offset: 0, bytes }))
    }
    for (const input of this.inputs) graph.message(11, input)
    for (const output of this.outputs) graph.message(12, output)
    const opset = (domain: string, version: number) =>
      new ProtobufWriter().text(1, domain).int(2, version)
    const model = new ProtobufWriter()
      .int(1, 10)
      .text(2, "rakit")
      .message(7, graph)
      .message(8, opset("", 17))
      .message(8, opset("com.microsoft", 1))
    // other graphs are those of a process without native kernels
    if (this.usesKernels) model.message(8, opset("rakit", 1))
    return model.toBytes()
  }
}
