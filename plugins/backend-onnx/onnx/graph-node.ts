import { ProtobufWriter } from "./protobuf.ts"

/** Numbers of TensorProto.DataType. */
export const elementTypes = {
  ...{ float: 1, uint8: 2, int8: 3, uint16: 4, int64: 7, float16: 10 },
} as const
export type ElementType = keyof typeof elementTypes

/** The name of a value (edge) in the graph. */
export type Value = string
export type Attribute = number | string | readonly number[] | { readonly float: number } | Branch

/** A subgraph: its nodes may use all values of the graph around it. */
export interface Branch {
  readonly nodes: readonly GraphNode[]
  readonly result: Value
}

export interface NodeOptions {
  readonly attributes?: Readonly<Record<string, Attribute>>
  /** `rakit`: an operator of the native kernels. */
  readonly domain?: "com.microsoft" | "rakit"
}

export interface GraphNode extends NodeOptions {
  readonly op: string
  readonly name: string
  /** Empty: left out. */
  readonly inputs: readonly Value[]
  readonly outputs: readonly Value[]
}

const branchProto = ({ nodes, result }: Branch): ProtobufWriter => {
  const graph = new ProtobufWriter()
  for (const node of nodes) graph.message(1, nodeProto(node))
  const tensor = new ProtobufWriter().int(1, elementTypes.float)
  const type = new ProtobufWriter().message(1, tensor)
  return graph.text(2, "branch").message(12, new ProtobufWriter().text(1, result).message(2, type))
}

const attributeProto = (name: string, value: Attribute): ProtobufWriter => {
  const proto = new ProtobufWriter().text(1, name)
  if (typeof value === "number") return proto.int(3, value).int(20, 2)
  if (typeof value === "string") return proto.text(4, value).int(20, 3)
  if ("float" in value) return proto.float(2, value.float).int(20, 1)
  if ("nodes" in value) return proto.message(6, branchProto(value)).int(20, 5)
  for (const item of value) proto.int(8, item)
  return proto.int(20, 7)
}

/** A NodeProto of onnx.proto3. */
export const nodeProto = ({
  op,
  name,
  inputs,
  outputs,
  attributes = {},
  domain,
}: GraphNode): ProtobufWriter => {
  const proto = new ProtobufWriter()
  for (const input of inputs) proto.text(1, input)
  for (const output of outputs) proto.text(2, output)
  proto.text(3, name).text(4, op)
  for (const [key, value] of Object.entries(attributes))
    proto.message(5, attributeProto(key, value))
  if (domain) proto.text(7, domain)
  return proto
}
