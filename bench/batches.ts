// Embeddings through a batch against calling the engine directly, and memory over a whole batch.
// `npm run build && RAKIT_MODELS=folder node --import tsx bench/batches.ts [--rounds 5] [--lines 1000] [--whole 50000]`
import { parseArgs } from "node:util"
import { runDirectly } from "./batches/direct.ts"
import { linesAtOnce, makeBatchDeployment } from "./batches/house.ts"
import { runBatch } from "./batches/through-batch.ts"
import { codeInWords } from "./house/code.ts"
import { type HouseInProcess, openHouse } from "./house/house-in-process.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { alternate, median, medianOf, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"

const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" }, lines: { type: "string", default: "1000" }, whole: { type: "string", default: "50000" } } })
const [rounds, lines, whole] = [Number(values.rounds), Number(values.lines), Number(values.whole)]
const startedMs = performance.now()
const goal = 0.9
const modelsDir = process.env.RAKIT_MODELS
const sides = [{ name: "batch" }, { name: "direct" }] as const

const printRounds = async (house: HouseInProcess): Promise<number> => {
  await runDirectly(house, Math.min(lines, 500))
  const results = await alternate(sides, rounds, async ({ name }) => (name === "direct" ? runDirectly(house, lines) : (await runBatch(house, lines)).perSecond))
  const middle = (side: string) => figure(medianOf(results, side, (perSecond) => perSecond))
  const ratio = ratioOf(results, "batch", "direct", (perSecond) => perSecond)
  printTable(
    `${lines} texts a round`,
    ["", "texts/s", "to the engine"],
    [
      ["the engine directly", middle("direct"), ""],
      ["a batch, from its first line to its end", middle("batch"), times(ratio)],
    ],
  )
  console.log(`  goal: at least ${goal} x`)
  return medianOf(results, "direct", (perSecond) => perSecond)
}

const megabytes = (bytes: number) => Math.round(bytes / 2 ** 20)

/** Of this process: worker, call path, ledger's client and engine; PostgreSQL is another. */
const printWhole = async (house: HouseInProcess): Promise<void> => {
  const before = await runDirectly(house, lines)
  const samples: { readonly done: number; readonly rss: number }[] = []
  const { perSecond, preflightMs } = await runBatch(house, whole, (done) => samples.push({ done, rss: process.memoryUsage().rss }))
  const after = await runDirectly(house, lines)
  const shares = Array.from({ length: 10 }, (_, tenth) =>
    samples.filter(({ done }) => done > (whole * tenth) / 10 && done <= (whole * (tenth + 1)) / 10).map(({ rss }) => megabytes(rss)),
  )
  printTable(
    `One batch of ${whole} lines, resident memory`,
    ["done", ...shares.map((_, tenth) => `${(tenth + 1) * 10} %`)],
    [
      ["median MB", ...shares.map((share) => figure(median(share)))],
      ["most MB", ...shares.map((share) => figure(Math.max(...share)))],
    ],
  )
  const direct = (before + after) / 2
  console.log(
    `  ${figure(perSecond)} texts/s, ${times(perSecond / direct)} to the engine directly (${figure(before)} before, ${figure(after)} after); checked in ${figure(preflightMs)} ms`,
  )
}

printMachine(`Batches against the engine, ${linesAtOnce} texts at once`, codeInWords)
console.log(
  `model    ${modelsDir === undefined ? "fake: it takes no time, so the ratio is the worst case; set RAKIT_MODELS for the real one" : "the embedding model of config/starter.yaml"}`,
)
const deployment = makeBatchDeployment(modelsDir)
const house = await openHouse(deployment)
try {
  if (rounds > 0) await printRounds(house)
  if (whole > 0) await printWhole(house)
  printLoadAfter(startedMs)
} finally {
  await house.close()
  deployment.remove()
}
