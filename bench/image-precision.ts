// What fewer bits cost the denoisers of image models and what they save: errors against fp32, memory
// of a session and processor time of a step, on random weights in the shape of each family's tiny
// checkpoint, made wider. `node --import tsx bench/image-precision.ts [--wider 40] [--only PATTERN]`
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import {
  type WiderPart,
  widerParts,
} from "../plugins/backend-onnx/diffusion/testing/wider-parts.ts"
import { graphFile, writeGraph } from "../plugins/backend-onnx/onnx/graph-cache.ts"
import type { Precision } from "../plugins/backend-onnx/onnx/linear.ts"
import { openSession } from "../plugins/backend-onnx/onnx/onnx-session.ts"
import { Unsupported } from "../plugins/backend-onnx/weights/model-file-error.ts"
import { irisPart } from "./images/iris-part.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { figure, printTable, times } from "./measure/table.ts"

const { values } = parseArgs({
  options: {
    wider: { type: "string", default: "40" },
    only: { type: "string", default: "" },
    run: { type: "string" },
  },
})
const precisions: readonly Precision[] = ["fp32", "fp16", "int8", "int4"]
const parts = [...widerParts(Number(values.wider)), irisPart()].filter(({ name }) =>
  new RegExp(values.only, "i").test(name),
)
const steps = 5

/** Megabytes of this process: private ones, those of mapped files, and the most of both. */
const memory = () => {
  const status = readFileSync("/proc/self/status", "utf8")
  const of = (key: string) => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)![1]) / 1000
  return { now: of("RssAnon") + of("RssFile"), most: of("VmHWM") }
}

interface Measured {
  /** Megabytes while the session is open and has run, and the most. */
  readonly kept: number
  readonly most: number
  readonly stepMs: number
}

/** In a process of its own: opens the graph in `folder`, runs it and writes what it makes. */
const runPart = async (part: WiderPart, folder: string): Promise<void> => {
  const feeds = part.feeds()
  const before = memory()
  const session = await openSession(join(folder, graphFile), 1, { memoryPattern: false })
  const times: number[] = []
  for (let step = 0; step < steps; step++) {
    const from = process.cpuUsage()
    const { output } = await session.run(feeds)
    const { user, system } = process.cpuUsage(from)
    times.push((user + system) / 1000)
    writeFileSync(join(folder, "output"), output!.data as Float32Array)
  }
  const after = memory()
  const measured: Measured = {
    kept: after.now - before.now,
    most: after.most - before.now,
    stepMs: times.sort((a, b) => a - b)[steps >> 1]!,
  }
  console.log(JSON.stringify(measured))
}

const build = (part: WiderPart, folder: string, precision: Precision): void => {
  const file = part.file()
  writeGraph(folder, { graph: graphFile, weights: "weights.bin" }, (graph) =>
    part.build({ graph, file, precision }),
  )
  file.close()
}

const measure = (part: WiderPart, precision: Precision) => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-image-precision-"))
  try {
    build(part, folder, precision)
    const own = process.argv.slice(1, 2)
    const options = ["--wider", values.wider, "--only", part.name.replace(/[()]/g, ".")]
    const text = execFileSync(
      process.execPath,
      ["--import", "tsx", ...own, ...options, "--run", folder],
      { encoding: "utf8", maxBuffer: 2 ** 24 },
    )
    const bytes = readFileSync(join(folder, "output"))
    const output = new Float32Array(new Uint8Array(bytes).buffer)
    return { ...(JSON.parse(text) as Measured), output }
  } catch (cause) {
    // rows that are no whole number of blocks
    if (!(cause instanceof Unsupported)) throw cause
    console.log(`\n${part.name}, ${precision}: ${cause.message}`)
    return undefined
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The largest and the mean error, in units of the root mean square of what fp32 makes. */
const errorsOf = (exact: Float32Array, coarse: Float32Array) => {
  let [most, sum, squares] = [0, 0, 0]
  for (const [i, value] of exact.entries()) {
    const error = Math.abs(value - coarse[i]!)
    most = Math.max(most, error)
    sum += error
    squares += value ** 2
  }
  const unit = Math.sqrt(squares / exact.length)
  return { most: most / unit, mean: sum / exact.length / unit }
}

const small = (error: number): string => (error === 0 ? "0" : error.toPrecision(2))

if (values.run !== undefined) {
  await runPart(parts[0]!, values.run)
  process.exit(0)
}
const startedMs = performance.now()
printMachine("Image models in fewer bits", "the sources, through tsx")
for (const part of parts) {
  const found = precisions.flatMap((precision) => {
    const measured = measure(part, precision)
    return measured ? [{ precision, ...measured }] : []
  })
  const [exact] = found
  printTable(
    part.name,
    ["", "max error", "mean error", "MB kept", "most MB", "ms of CPU a step", "to fp32"],
    found.map(({ precision, output, kept, most, stepMs }) => {
      const errors = errorsOf(exact!.output, output)
      return [
        precision,
        small(errors.most),
        small(errors.mean),
        ...[kept, most, stepMs].map(figure),
        times(stepMs / exact!.stepMs),
      ]
    }),
  )
}
printLoadAfter(startedMs)
