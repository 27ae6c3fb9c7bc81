import type { EngineSpec } from "../../plugins/backend-onnx/worker/protocol.ts"
import { alternate, medianOf, ratioOf } from "../measure/rounds.ts"
import { figure, times } from "../measure/table.ts"
import { type EngineProcess, openSteps } from "./engine-process.ts"
import type { Timing } from "./protocol.ts"
import type { Table } from "./report.ts"
import type { StepTask, StepTiming } from "./step-process.ts"

const streamCounts = [1, 4, 8, 16]
const streams = (count: number) => `${count} stream${count > 1 ? "s" : ""}`

export interface DeterminismOptions {
  readonly spec: EngineSpec
  readonly rounds: number
  readonly tokens: number
}

const cases = [
  { name: "temperature 0", temperature: 0 },
  { name: "temperature 1, with a seed", temperature: 1 },
]

/**
 * The answer to the first prompt alone and among others, cold and warm, and by `again`, an engine of
 * the same model that was started later.
 */
export const measureAnswers = async (
  engine: EngineProcess,
  again: EngineProcess,
  prompts: readonly (readonly number[])[],
  { rounds, tokens }: DeterminismOptions,
): Promise<Table> => {
  const rows = []
  for (const { name, temperature } of cases) {
    const answers: string[] = []
    const run = async (side: EngineProcess, count: number, warm = false): Promise<Timing> => {
      const task = { prompts: prompts.slice(0, count), tokens, temperature, warm }
      const timing = await side.run(task)
      answers.push(timing.answers![0]!)
      return timing
    }
    const sides = streamCounts.map((count) => ({ name: streams(count), count }))
    const results = await alternate(sides, rounds, ({ count }) => run(engine, count))
    for (const count of streamCounts) await run(engine, count, true)
    for (const count of streamCounts) await run(again, count)
    const different = new Set(answers).size
    rows.push([
      name,
      ...sides.map((side) => figure(medianOf(results, side.name, (each) => each.writtenPerSecond))),
      different === 1 ? `all ${answers.length} equal` : `${different} of ${answers.length} differ`,
    ])
  }
  return {
    title:
      "The same request alone and among others, cold, warm and after a restart: tokens a second",
    head: ["", ...streamCounts.map(streams), "answers to the first"],
    rows,
  }
}

interface Way extends Pick<StepTask, "lonelyOnce"> {
  readonly name: string
  readonly process: EngineProcess
}

const reference = "ONNX Runtime's, a lonely row as it is: other bits in company"

/** What equal bits cost: steps whose rows have them, against steps that don't care. */
export const measurePrice = async ({ spec, rounds }: DeterminismOptions): Promise<Table> => {
  const native = await openSteps(spec, "")
  const runtime = await openSteps(spec, "none")
  try {
    const ways: readonly Way[] = [
      { name: "native kernels: the same bits in any company", process: native, lonelyOnce: false },
      {
        name: "ONNX Runtime's, a lonely row twice: the same bits",
        process: runtime,
        lonelyOnce: false,
      },
      { name: reference, process: runtime, lonelyOnce: true },
    ]
    const measure = async ({ process, lonelyOnce }: Way) => {
      const found = new Map<number, number>()
      for (const rows of streamCounts) {
        const task: StepTask = { rows, past: 100, steps: 24, lonelyOnce }
        const { medianMs } = await process.ask<StepTiming>(task)
        found.set(rows, (rows / medianMs) * 1000)
      }
      return found
    }
    for (const way of ways) await measure(way)
    const results = await alternate(ways, rounds, measure)
    const cell = (name: string, rows: number) => {
      const of = (found: ReadonlyMap<number, number>) => found.get(rows)!
      return `${figure(medianOf(results, name, of))} (${times(ratioOf(results, name, reference, of))})`
    }
    return {
      title: "What equal bits cost: tokens a second of single steps (ratio to the last row)",
      head: ["products of", ...streamCounts.map(streams)],
      rows: ways.map(({ name }) => [name, ...streamCounts.map((rows) => cell(name, rows))]),
    }
  } finally {
    native.stop()
    runtime.stop()
  }
}
