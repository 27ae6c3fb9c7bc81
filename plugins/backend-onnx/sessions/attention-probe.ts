import { join } from "node:path"
import type { DecoderConfig } from "../architectures/decoder-config.ts"
import { deviceAttention, deviceFrame } from "../onnx/device-attention.ts"
import { writeGraph } from "../onnx/graph-cache.ts"
import { floats, longs, openSession, type Session } from "../onnx/onnx-session.ts"
import type { Tensor } from "../onnx/runtime.ts"
import type { DeviceKv } from "./device-kv.ts"

const files = { graph: "attention.onnx", weights: "attention.bin", target: "gpu" } as const

type Heads = Pick<DecoderConfig, "heads" | "kvHeads" | "headSize">

/** Writes the graph of one attention of the model. */
export const writeAttention = (folder: string, config: DecoderConfig): void =>
  writeGraph(folder, files, (graph) => {
    const { heads, kvHeads, headSize } = config
    graph.input("queries", "float", ["B", "S", heads * headSize])
    for (const kind of ["keys", "values"])
      graph.input(kind, "float", ["B", "S", kvHeads * headSize])
    for (const kind of ["k", "v"])
      graph.input(`past.0.${kind}`, "float", ["PB", kvHeads, "P", headSize])
    const input = { queries: "queries", keys: "keys", values: "values", window: undefined }
    const past = { keys: "past.0.k", values: "past.0.v" }
    const present = { keys: "present.0.k", values: "present.0.v" }
    const frame = deviceFrame(graph)
    const out = deviceAttention(graph, config, frame, { ...input, past }, present)
    graph.output("out", out, "float", ["B", "S", heads * headSize])
  })

/** Tokens of the probe: more than the operator's kernels for few tokens take. */
const tokens = 64
/** Chunks that were right on every device that was tried. */
export const smallChunk = 16
const tolerance = 1e-3

const numbers = (count: number, seed: number): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(i * 12.9898 + seed * 78.233))

const attended = async (session: Session, kv: DeviceKv, sizes: Heads, chunk: number) => {
  const { heads, kvHeads, headSize } = sizes
  const store = kv.store(1, 2 * tokens)
  const [k, v] = await store.ready(1)
  const past = { "past.0.k": k!, "past.0.v": v! }
  const present = { "present.0.k": k!, "present.0.v": v! }
  const all: Float32Array[] = []
  for (let from = 0; from < tokens; from += chunk) {
    const part = (width: number, seed: number): Tensor => {
      const values = numbers(tokens * width, seed).subarray(from * width, (from + chunk) * width)
      return floats(values, [1, chunk, width])
    }
    const feeds = {
      queries: part(heads * headSize, 1),
      keys: part(kvHeads * headSize, 2),
      values: part(kvHeads * headSize, 3),
      last: longs([from + chunk - 1]),
      longest: longs([from + chunk]),
      ...past,
    }
    const { out } = await session.run(feeds, { out: null, ...present })
    all.push(out!.data as Float32Array)
  }
  store.release()
  return all.flatMap((part) => [...part])
}

/**
 * Whether the device attends to many new tokens at once as it does to few. ONNX Runtime's kernel
 * for 32 and more is wrong on SwiftShader, whose subgroups have 4 invocations.
 */
export const takesLargeChunks = async (
  folder: string,
  kv: DeviceKv,
  sizes: Heads,
): Promise<boolean> => {
  const session = await openSession(join(folder, files.graph), 1)
  try {
    const small = await attended(session, kv, sizes, smallChunk)
    const large = await attended(session, kv, sizes, tokens)
    return large.every((value, i) => Math.abs(value - small[i]!) < tolerance)
  } finally {
    await session.release()
  }
}
