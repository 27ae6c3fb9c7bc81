// Embeddings through a batch against calling the engine directly, and memory over a whole batch.
// `npm run build && RAKIT_MODELS=folder node --import tsx bench/batches.ts [--rounds 5] [--lines
// 1000] [--whole 50000] [--texts paragraph]`
import { parseArgs } from "node:util"
import { linesAtOnce, makeBatchDeployment, type TextKind } from "./batches/deployment.ts"
import { runDirectly } from "./batches/direct.ts"
import { runThroughBatch } from "./batches/through-batch.ts"
import { codeInWords } from "./deployment/code.ts"
import { type DeploymentInProcess, openDeployment } from "./deployment/in-process.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { alternate, median, medianOf, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    lines: { type: "string", default: "1000" },
    whole: { type: "string", default: "50000" },
    texts: { type: "string" },
  },
})
const [rounds, lines, whole] = [Number(values.rounds), Number(values.lines), Number(values.whole)]
const startedMs = performance.now()
const goal = 0.9
const kinds: readonly TextKind[] =
  values.texts === "sentence" || values.texts === "paragraph"
    ? [values.texts]
    : ["sentence", "paragraph"]
const modelsDir = process.env.RAKIT_MODELS
const sides = [{ name: "batch" }, { name: "direct" }] as const

const printRounds = async (deployment: DeploymentInProcess, kind: TextKind): Promise<void> => {
  await runDirectly(deployment, kind, Math.min(lines, 500))
  const results = await alternate(sides, rounds, async ({ name }) =>
    name === "direct"
      ? runDirectly(deployment, kind, lines)
      : (await runThroughBatch(deployment, kind, lines)).perSecond,
  )
  const middle = (side: string) => figure(medianOf(results, side, (perSecond) => perSecond))
  const ratio = ratioOf(results, "batch", "direct", (perSecond) => perSecond)
  printTable(
    `${lines} ${kind}s a round`,
    ["", "texts/s", "to the engine"],
    [
      ["the engine directly", middle("direct"), ""],
      ["a batch, from its first line to its end", middle("batch"), times(ratio)],
    ],
  )
  console.log(`  goal: at least ${goal} x`)
}

interface Sample {
  readonly done: number
  readonly rss: number
  readonly atMs: number
}

/** Texts per second from the first to the last sample. */
const pace = (share: readonly Sample[]): number => {
  const [first, last] = [share[0], share.at(-1)]
  return first && last && last.atMs > first.atMs
    ? ((last.done - first.done) * 1000) / (last.atMs - first.atMs)
    : Number.NaN
}

const megabytes = (bytes: number) => Math.round(bytes / 2 ** 20)

/** Pace and resident memory over one batch. */
const printWhole = async (deployment: DeploymentInProcess, kind: TextKind): Promise<void> => {
  const before = await runDirectly(deployment, kind, lines)
  const samples: Sample[] = []
  const { perSecond, preflightMs } = await runThroughBatch(deployment, kind, whole, (done) =>
    samples.push({ done, rss: process.memoryUsage().rss, atMs: performance.now() }),
  )
  const after = await runDirectly(deployment, kind, lines)
  const tenths = Array.from({ length: 10 }, (_, tenth) =>
    samples.filter(({ done }) => done > (whole * tenth) / 10 && done <= (whole * (tenth + 1)) / 10),
  )
  const shares = tenths.map((share) => share.map(({ rss }) => megabytes(rss)))
  printTable(
    `One batch of ${whole} ${kind}s, pace and resident memory`,
    ["done", ...shares.map((_, tenth) => `${(tenth + 1) * 10} %`)],
    [
      ["texts/s", ...tenths.map((share) => figure(pace(share)))],
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
const opened = await openDeployment(deployment)
try {
  if (rounds > 0) for (const kind of kinds) await printRounds(opened, kind)
  if (whole > 0) await printWhole(opened, kinds.at(-1)!)
  printLoadAfter(startedMs)
} finally {
  await opened.close()
  deployment.remove()
}
