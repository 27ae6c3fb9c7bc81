import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EncoderBuilding } from "../../../encoding/encoder-model.ts"
import { graphFile, writeGraph } from "../../../onnx/graph-cache.ts"
import type { Precision } from "../../../onnx/linear.ts"
import { openSession, type Session } from "../../../onnx/onnx-session.ts"
import type { Metadata } from "../../../weights/gguf-metadata.ts"
import { openSafetensors } from "../../../weights/safetensors.ts"

const fixtures = join(import.meta.dirname, "..", "..", "..", "fixtures", "diffusion")

export const diffusionFolder = (...path: readonly string[]): string => join(fixtures, ...path)

export interface ExpectedTensor {
  readonly data: Float32Array
  readonly dims: readonly number[]
}

/** Tensors of a family's file of expected ones; bytes as they are, others as floats. */
export const expectedTensors = (family: string, file = "expected") => {
  const bytes = readFileSync(join(fixtures, family, `${file}.safetensors`))
  const length = Number(bytes.readBigUInt64LE())
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + length)) as Record<
    string,
    { readonly dtype: string; readonly shape: number[]; readonly data_offsets: [number, number] }
  >
  const raw = (name: string) => {
    const { dtype, shape, data_offsets: offsets } = header[name]!
    const [from, to] = offsets.map((offset) => 8 + length + offset)
    return { dtype, dims: shape, bytes: Uint8Array.from(bytes.subarray(from, to)) }
  }
  return {
    floats: (name: string): ExpectedTensor => {
      const { dims, bytes: own } = raw(name)
      return { dims, data: new Float32Array(own.buffer) }
    },
    bytes: raw,
  }
}

export const expectedJson = <A>(family: string): A =>
  JSON.parse(readFileSync(join(fixtures, family, "expected.json"), "utf8")) as A

export const partConfig = (...folder: readonly string[]): Metadata =>
  new Map(
    Object.entries(
      JSON.parse(readFileSync(join(fixtures, ...folder, "config.json"), "utf8")) as object,
    ),
  ) as Metadata

/** Builds the graph of a part of a fixture, runs `use` with its session, and removes it. */
export const withPart = async <A>(
  folder: readonly string[],
  weights: string,
  build: (building: EncoderBuilding) => void,
  use: (session: Session) => Promise<A>,
  precision: Precision = "fp32",
): Promise<A> => {
  const root = mkdtempSync(join(tmpdir(), "rakit-part-"))
  const file = openSafetensors(join(fixtures, ...folder, weights))
  try {
    writeGraph(root, { graph: graphFile, weights: "weights.bin" }, (graph) =>
      build({ graph, file, precision }),
    )
    const session = await openSession(join(root, graphFile), 1)
    try {
      return await use(session)
    } finally {
      await session.release()
    }
  } finally {
    file.close()
    rmSync(root, { recursive: true, force: true })
  }
}
