import { alternate, medianOf, ratioOf } from "../measure/rounds.ts"
import { figure, times } from "../measure/table.ts"
import type { EngineProcess } from "./engine-process.ts"
import { chatPrompts, copyPrompt } from "./prompts.ts"
import type { Report, Table } from "./report.ts"

export interface GrowthOptions {
  /** In tokens. */
  readonly contexts: readonly number[]
  readonly rounds: number
  readonly tokens: number
}

/**
 * Decode speed by context length: the prompt is prefilled once and cached, so that only decoding is
 * measured.
 */
export const measureGrowth = async (
  side: EngineProcess,
  long: readonly number[],
  { contexts, rounds, tokens }: GrowthOptions,
): Promise<Report["byContext"]> => {
  const lines = []
  for (const streams of [1, 8]) {
    const points: [number, number][] = []
    for (const context of contexts) {
      const results: number[] = []
      const prompts = Array.from({ length: streams }, () => long.slice(0, context))
      for (let round = 0; round < (context > 1_024 ? 1 : Math.min(3, rounds)); round++)
        results.push(
          (await side.run({ prompts, tokens: Math.min(tokens, 32), warm: true })).writtenPerSecond,
        )
      points.push([context, results.sort((a, b) => a - b)[results.length >> 1]!])
    }
    lines.push({ name: `${streams} stream${streams > 1 ? "s" : ""}`, points })
  }
  return lines
}

export const growthTable = (lines: Report["byContext"], contexts: readonly number[]): Table => ({
  title: "Tokens a second while writing, by tokens in the context",
  head: ["", ...contexts.map((context) => context.toLocaleString("en-US"))],
  rows: lines.map(({ name, points }) => [
    name,
    ...points.map(([, perSecond]) => figure(perSecond)),
  ]),
})

/**
 * One sampled answer: prompt lookup helps where the text repeats itself, and should cost nothing
 * elsewhere.
 */
export const measureGuessing = async (
  guessing: EngineProcess,
  plain: EngineProcess,
  { rounds, tokens }: Pick<GrowthOptions, "rounds" | "tokens">,
): Promise<Table> => {
  const ids = await guessing.encode([...chatPrompts(4), copyPrompt()])
  const rows = []
  for (const [name, prompts, temperature] of [
    ["four answers to questions, one after the other, temperature 1", ids.slice(0, 4), 1],
    ["copying code, temperature 0.3", ids.slice(4), 0.3],
  ] as const) {
    const measure = async (side: EngineProcess) => {
      const results = []
      for (const prompt of prompts)
        results.push(await side.run({ prompts: [prompt], tokens, temperature }))
      return (
        results.length /
        results.reduce((sum, { writtenPerSecond }) => sum + 1 / writtenPerSecond, 0)
      )
    }
    const results = await alternate([guessing, plain], rounds, measure)
    const of = (perSecond: number) => perSecond
    rows.push([
      name,
      figure(medianOf(results, guessing.name, of)),
      figure(medianOf(results, plain.name, of)),
      times(ratioOf(results, guessing.name, plain.name, of)),
    ])
  }
  return {
    title: "Guessing from what came before, tokens a second of one sampled stream",
    head: ["", "guessing", "not guessing", "ratio"],
    rows,
  }
}
