// Time from spawn to listening and to ready, and memory. `npm run build && RAKIT_MODELS=folder node
// --import tsx bench/startup.ts [--rounds 5]`
import { existsSync } from "node:fs"
import { codeInWords } from "./deployment/code.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { readOptions } from "./measure/options.ts"
import { alternate, medianOf, type Rounds, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"
import {
  bareNode,
  calls,
  coldRakit,
  helloServer,
  type Start,
  type StartCase,
  warmFake,
  warmLarge,
  warmStarter,
} from "./startup/starts.ts"

const { rounds } = readOptions({ rounds: 5, ms: 1 })
const startedMs = performance.now()
const modelsDir = process.env.RAKIT_MODELS

const printTimes = (results: Rounds<Start>, [node, hello, ...rakits]: readonly StartCase[]) => {
  const middle = ({ name }: StartCase, figureOf: (start: Start) => number) =>
    figure(medianOf(results, name, figureOf))
  const row = (one: StartCase) => [
    one.name,
    middle(one, ({ listeningMs }) => listeningMs),
    middle(one, ({ startedMs }) => startedMs),
    middle(one, ({ readyMs }) => readyMs),
    middle(one, ({ answerMs }) => answerMs),
    times(ratioOf(results, one.name, node!.name, ({ listeningMs }) => listeningMs)),
    times(ratioOf(results, one.name, hello!.name, ({ listeningMs }) => listeningMs)),
    times(ratioOf(results, one.name, hello!.name, ({ readyMs }) => readyMs)),
  ]
  const head = [
    "ms from spawn",
    "listening",
    "plugins started",
    "models ready",
    "first answer",
    "listening to node -e 0",
    "listening to hello",
    "ready to hello",
  ]
  printTable("Start", head, [node!, hello!, ...rakits].map(row))
}

const printMemory = (results: Rounds<Start>, [, hello, ...rakits]: readonly StartCase[]) => {
  const row = (one: StartCase, state: string, memory: (start: Start) => Start["idle"]) => {
    const middle = (figureOf: (memory: Start["idle"]) => number) =>
      figure(medianOf(results, one.name, (start) => figureOf(memory(start))))
    const ratio =
      medianOf(results, one.name, (start) => memory(start).rssMb) /
      medianOf(results, hello!.name, ({ idle }) => idle.rssMb)
    return [
      `${one.name}, ${state}`,
      middle(({ rssMb }) => rssMb),
      middle(({ treePssMb }) => treePssMb),
      middle(({ postgresPssMb }) => postgresPssMb),
      times(ratio),
    ]
  }
  const measured = rakits.filter(({ name }) =>
    Number.isFinite(medianOf(results, name, ({ idle }) => idle.rssMb)),
  )
  const rows = measured.flatMap((one) => [
    row(one, "idle", ({ idle }) => idle),
    row(one, `after ${calls} calls`, ({ afterCalls }) => afterCalls),
  ])
  printTable(
    "Memory",
    ["MB", "RSS of node", "PSS of all processes", "PostgreSQL's part", "RSS to hello"],
    [row(hello!, "idle", ({ idle }) => idle), ...rows],
  )
}

printMachine("Start and memory", codeInWords)
const cases: StartCase[] = [bareNode(), helloServer(), coldRakit()]
try {
  cases.push(await warmFake())
  if (modelsDir && existsSync(modelsDir))
    cases.push(await warmStarter(modelsDir), await warmLarge())
  else
    console.log(
      "skipped  config/starter.yaml: set RAKIT_MODELS to a folder with its models (rakit models pull)",
    )
  const results = await alternate(cases, rounds, (one) => one.start())
  console.log(
    `rounds   ${rounds}, alternating; medians of the rounds, ratios of times within a round`,
  )
  printTimes(results, cases)
  printMemory(results, cases)
  printLoadAfter(startedMs)
} finally {
  for (const one of cases) one.close()
}
