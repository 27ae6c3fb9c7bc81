import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { graphFile, writeGraph } from "../../onnx/graph-cache.ts"
import type { Precision } from "../../onnx/linear.ts"
import { openSession } from "../../onnx/onnx-session.ts"
import { InferenceSession } from "../../onnx/runtime.ts"
import { type WiderPart, widerParts } from "../testing/wider-parts.ts"

const parts = widerParts(4)

const withGraph = async <A>(
  part: WiderPart,
  precision: Precision,
  use: (folder: string) => Promise<A>,
): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-bits-"))
  const file = part.file()
  try {
    writeGraph(folder, { graph: graphFile, weights: "weights.bin" }, (graph) =>
      part.build({ graph, file, precision }),
    )
    return await use(folder)
  } finally {
    file.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const outputIn = (part: WiderPart, precision: Precision): Promise<Float32Array> =>
  withGraph(part, precision, async (folder) => {
    const session = await openSession(join(folder, graphFile), 1)
    const { output } = await session.run(part.feeds())
    await session.release()
    return output!.data as Float32Array
  })

test.each(parts.map((part) => [part.name, part] as const))(
  "%s of weights that fit no 16 bits is near what fp32 makes, by the bits that it has",
  async (_, part) => {
    const exact = await outputIn(part, "fp32")
    const unit = Math.sqrt(exact.reduce((sum, value) => sum + value ** 2, 0) / exact.length)
    const errorOf = async (precision: Precision) => {
      const coarse = await outputIn(part, precision)
      return (
        exact.reduce((most, value, i) => Math.max(most, Math.abs(value - coarse[i]!)), 0) / unit
      )
    }
    const errors = [await errorOf("fp16"), await errorOf("int8"), await errorOf("int4")]
    // measured: 0.001 to 0.005, 0.05 to 0.1 and 0.5 to 1
    for (const [i, bound] of [0.01, 0.2, 2].entries()) expect(errors[i]).toBeLessThan(bound)
    expect(errors[0]).toBeGreaterThan(0)
  },
)

test.each(parts.map((part) => [part.name, part] as const))(
  "%s takes less room in fewer bits, its convolutions included",
  async (_, part) => {
    const bytesIn = (precision: Precision) =>
      withGraph(part, precision, async (folder) => statSync(join(folder, "weights.bin")).size)
    const exact = await bytesIn("fp32")
    const half = await bytesIn("fp16")
    expect(half).toBeLessThan(0.52 * exact)
    const eight = await bytesIn("int8")
    expect(eight).toBeLessThan(half)
    expect(await bytesIn("int4")).toBeLessThan(eight)
  },
)

/** Operators in the order in which a session ran them. */
const ranIn = async (part: WiderPart, folder: string): Promise<readonly string[]> => {
  const session = await InferenceSession.create(join(folder, graphFile), {
    enableProfiling: true,
    profileFilePrefix: join(folder, "profile"),
    logSeverityLevel: 3,
    intraOpNumThreads: 1,
  })
  await session.run(part.feeds())
  session.endProfiling()
  await session.release()
  const name = readdirSync(folder).find((file) => file.startsWith("profile"))!
  const events = JSON.parse(readFileSync(join(folder, name), "utf8")) as readonly {
    readonly name: string
    readonly args?: { readonly op_name?: string }
  }[]
  return events.flatMap(({ name: event, args }) =>
    event.endsWith("_kernel_time") ? [args!.op_name!] : [],
  )
}

test.each(parts.map((part) => [part.name, part] as const))(
  "floats of the weights of %s in 16 bits are made right before the operator that takes them",
  async (_, part) => {
    const ran = await withGraph(part, "fp16", (folder) => ranIn(part, folder))
    const users = /^(FusedMatMul|MatMul|Gemm|Conv|FusedConv)$/
    const casts = ran.flatMap((name, i) => (name === "Cast" ? [ran[i + 1]!] : []))
    expect(casts.length).toBe(ran.filter((name) => users.test(name)).length)
    for (const next of casts) expect(next).toMatch(users)
  },
)
