import { statSync } from "node:fs"
import type { EngineSpec } from "../../plugins/backend-onnx/worker/protocol.ts"
import { alternate, medianOf, ratioOf } from "../measure/rounds.ts"
import { figure, times } from "../measure/table.ts"
import { type EngineProcess, openLlamaCpp, openRakit } from "./engine-process.ts"
import { hasPeer, randomModelIn } from "./models.ts"
import { chatPrompts, longText } from "./prompts.ts"
import type { Table } from "./report.ts"

export interface SizesOptions {
  readonly sizes: readonly string[]
  /** Whose tokenizer the files get. */
  readonly model: string
  readonly folder: string
  readonly spec: EngineSpec
  readonly rounds: number
  readonly tokens: number
}

const streamCounts = [1, 4, 8, 16]
/** Tokens of the prompt whose reading is measured. */
export const promptTokens = 440
const longTokens = 4_000
// the peer reads each of eight prompts anew, which takes minutes above this size
const longSizes = ["135M"]

const names = ["Rakit", "node-llama-cpp"] as const

export interface Measured {
  /** Tokens a second while all write, by streams. */
  readonly written: ReadonlyMap<number, number>
  readonly readPerSecond: number
}

/** `ids`: prompts, and a long text as the last. */
export const measureSide =
  (counts: readonly number[], ids: readonly (readonly number[])[], tokens: number) =>
  async (side: EngineProcess): Promise<Measured> => {
    const [prompts, long] = [ids.slice(0, -1), ids.at(-1)!]
    const written = new Map<number, number>()
    for (const streams of counts) {
      const run = await side.run({ prompts: prompts.slice(0, streams), tokens })
      written.set(streams, run.writtenPerSecond)
    }
    const first = await side.run({ prompts: [long.slice(0, promptTokens)], tokens: 2 })
    return { written, readPerSecond: (promptTokens / first.firstTokenMs) * 1000 }
  }

const atLength = async (
  sides: readonly EngineProcess[],
  long: readonly number[],
  tokens: number,
): Promise<ReadonlyMap<string, number>> => {
  const found = new Map<string, number>()
  const prompts = Array.from({ length: 8 }, () => long.slice(0, longTokens))
  for (const side of sides)
    found.set(side.name, (await side.run({ prompts, tokens, warm: true })).writtenPerSecond)
  return found
}

const openSides = async (path: string, spec: EngineSpec): Promise<readonly EngineProcess[]> => {
  const open = () => openRakit(names[0], { ...spec, path })
  // the first start builds the graph
  const first = await open()
  first.stop()
  return [await open(), ...(hasPeer ? [await openLlamaCpp(names[1], path, spec.threads)] : [])]
}

const measureSize = async (
  size: string,
  { model, folder, spec, rounds, tokens }: SizesOptions,
): Promise<readonly (readonly string[])[]> => {
  const path = randomModelIn(folder, size, model)
  const sides = await openSides(path, spec)
  try {
    const ids = await sides[0]!.encode([...chatPrompts(16), longText()])
    const results = await alternate(sides, rounds, measureSide(streamCounts, ids, tokens))
    const resident = new Map(sides.map((side) => [side.name, side.residentMb()]))
    const atLong = longSizes.includes(size) ? await atLength(sides, ids.at(-1)!, tokens) : undefined
    return sides.map(({ name, readyMs }) => {
      const cell = (of: (measured: Measured) => number) => {
        const ratio = hasPeer ? ` (${times(ratioOf(results, name, names[1], of))})` : ""
        return `${figure(medianOf(results, name, of))}${ratio}`
      }
      return [
        `${size} (${Math.round(statSync(path).size / 2 ** 20)} MB), ${name}`,
        ...streamCounts.map((streams) => cell(({ written }) => written.get(streams)!)),
        cell(({ readPerSecond }) => readPerSecond),
        atLong ? figure(atLong.get(name)!) : "-",
        figure(resident.get(name)!),
        figure(readyMs / 1000),
      ]
    })
  } finally {
    for (const side of sides) side.stop()
  }
}

/** Models of random weights in real shapes, in both engines. */
export const measureSizes = async (options: SizesOptions): Promise<Table> => {
  const rows = []
  for (const size of options.sizes) rows.push(...(await measureSize(size, options)))
  return {
    title: `Random weights in real shapes, Q4_0: tokens a second (ratio to the peer)`,
    head: [
      "",
      ...streamCounts.map((streams) => `${streams} write`),
      `${promptTokens} read`,
      `8 write after ${longTokens.toLocaleString("en-US")}`,
      "resident MB",
      "ready again s",
    ],
    rows,
  }
}
