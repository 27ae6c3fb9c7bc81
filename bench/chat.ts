// The chat engine against node-llama-cpp on the same file, and how its cost grows; writes
// docs/engine.md and docs/engine.svg.
// `npm run build && npm install --prefix bench/peers --omit=optional --ignore-scripts && node
// --import tsx bench/chat.ts [--model M.gguf] [--rounds 5] [--tokens 64] [--requests 10000]
// [--seconds 20] [--sizes 135M,360M,1B] [--only speed,growth,schema,determinism,sizes,precisions,served,memory]`
import { mkdtempSync, rmSync } from "node:fs"
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os"
import { basename, join } from "node:path"
import { parseArgs } from "node:util"
import { addon } from "../plugins/backend-onnx/kernels/addon.ts"
import type { EngineSpec } from "../plugins/backend-onnx/worker/protocol.ts"
import { measureAnswers, measurePrice } from "./chat/determinism.ts"
import { type EngineProcess, openLlamaCpp, openRakit } from "./chat/engine-process.ts"
import { growthTable, measureGrowth, measureGuessing } from "./chat/growth.ts"
import { chatModelPath, hasPeer } from "./chat/models.ts"
import { measurePrecisions } from "./chat/precisions.ts"
import { chatPrompts, longText } from "./chat/prompts.ts"
import type { Timing } from "./chat/protocol.ts"
import { type Report, type Table, writeReport } from "./chat/report.ts"
import { measureSchemas } from "./chat/schema.ts"
import { measureLoopGap, measureMemory } from "./chat/served.ts"
import { measureSizes } from "./chat/sizes.ts"
import { codeInWords } from "./deployment/code.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { alternate, medianOf, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"

const strings = [
  "model",
  "rounds",
  "tokens",
  "requests",
  "seconds",
  "contexts",
  "sizes",
  "only",
] as const
const { values } = parseArgs({
  options: Object.fromEntries(strings.map((name) => [name, { type: "string" as const }])),
})
const count = (name: (typeof strings)[number], fallback: number): number =>
  Math.max(1, Number(values[name] ?? fallback))
const [rounds, tokens, requests, seconds] = [
  count("rounds", 3),
  count("tokens", 32),
  count("requests", 3_000),
  count("seconds", 10),
]
const wanted = String(
  values.only ?? "speed,growth,schema,determinism,sizes,precisions,served,memory",
).split(",")
const threads = 2
const streamCounts = [1, 4, 8, 16]
const contexts = [128, 512, 1_024, 2_048, 4_096].slice(0, count("contexts", 5))

const startedMs = performance.now()
const model = chatModelPath(values.model as string | undefined)
const folder = mkdtempSync(join(tmpdir(), "rakit-chat-bench-"))
const open: EngineProcess[] = []
const keep = async (opening: Promise<EngineProcess>): Promise<EngineProcess> => {
  const engine = await opening
  open.push(engine)
  return engine
}
const spec = (more: Partial<EngineSpec> = {}): EngineSpec => ({
  kind: "decoder",
  path: model,
  graphs: join(folder, "graphs"),
  precision: "auto",
  threads,
  slots: 16,
  kvBytes: 4 * 2 ** 30,
  prefixCacheBytes: 2 ** 29,
  speculation: true,
  ...more,
})

interface Speed {
  readonly byStreams: ReadonlyMap<number, Timing>
  readonly cold: Timing
  readonly warm: Timing
}

const ours = "Rakit"
const peer = "node-llama-cpp, the same file"

const openSides = async (): Promise<readonly EngineProcess[]> => {
  const sides = [await keep(openRakit(ours, spec()))]
  if (!hasPeer)
    console.warn("node-llama-cpp is not installed under bench/peers: Rakit alone is measured")
  if (hasPeer) sides.push(await keep(openLlamaCpp(peer, model, threads)))
  return sides
}

const measureSpeed = async (
  sides: readonly EngineProcess[],
  prompts: readonly (readonly number[])[],
  long: readonly number[],
) => {
  const measure = async (side: EngineProcess): Promise<Speed> => {
    const byStreams = new Map<number, Timing>()
    for (const streams of streamCounts)
      byStreams.set(streams, await side.run({ prompts: prompts.slice(0, streams), tokens }))
    const request = { prompts: [long.slice(0, 512)], tokens: 2 }
    return {
      byStreams,
      cold: await side.run(request),
      warm: await side.run({ ...request, warm: true }),
    }
  }
  for (const side of sides) await side.run({ prompts: prompts.slice(0, 1), tokens: 8 })
  return alternate(sides, rounds, measure)
}

type Speeds = Awaited<ReturnType<typeof measureSpeed>>

const speedTables = (results: Speeds): readonly Table[] => {
  const names = [...results.keys()]
  const median = (name: string, of: (speed: Speed) => number) => medianOf(results, name, of)
  const against = (name: string, of: (speed: Speed) => number) =>
    results.has(peer) ? times(ratioOf(results, name, peer, of)) : "-"
  const perSecond = (streams: number) => (speed: Speed) =>
    speed.byStreams.get(streams)!.tokensPerSecond
  const written = (streams: number) => (speed: Speed) =>
    speed.byStreams.get(streams)!.writtenPerSecond
  const first = (which: "cold" | "warm") => (speed: Speed) => speed[which].firstTokenMs
  const sooner = (which: "cold" | "warm") => (speed: Speed) => 1 / speed[which].firstTokenMs
  const rowsOf = (of: (streams: number) => (speed: Speed) => number) =>
    names.map((name) => [
      name,
      ...streamCounts.flatMap((streams) => [
        figure(median(name, of(streams))),
        against(name, of(streams)),
      ]),
    ])
  const head = ["", ...streamCounts.flatMap((streams) => [`${streams} streams`, "to the peer"])]
  return [
    {
      title: `Tokens a second, ${tokens} tokens each, reading the prompt included`,
      head,
      rows: rowsOf(perSecond),
    },
    { title: "Tokens a second while all streams write", head, rows: rowsOf(written) },
    {
      title: "Time to the first token of a prompt of 512 tokens, ms",
      head: ["", "cold", "to the peer", "warm", "to the peer"],
      rows: names.map((name) => [
        name,
        figure(median(name, first("cold"))),
        against(name, sooner("cold")),
        figure(median(name, first("warm"))),
        against(name, sooner("warm")),
      ]),
    },
  ]
}

const run = async (): Promise<Report> => {
  const machine = [
    `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"}), Node ${process.version}; load ${loadavg()[0]!.toFixed(1)} before the first round`,
    `model ${basename(model)}; ${threads} threads; code: ${codeInWords}; native kernels: ${addon?.instructions || "none"}; ${rounds} rounds`,
  ]
  const tables: Table[] = []
  let [byStreams, byContext]: [Report["byStreams"], Report["byContext"]] = [[], []]
  if (["speed", "growth", "schema", "determinism"].some((part) => wanted.includes(part))) {
    const sides = wanted.includes("speed")
      ? await openSides()
      : [await keep(openRakit(ours, spec()))]
    const ids = await sides[0]!.encode([...chatPrompts(16), longText()])
    const [prompts, long] = [ids.slice(0, -1), ids.at(-1)!]
    if (wanted.includes("speed")) {
      const results = await measureSpeed(sides, prompts, long)
      tables.push(...speedTables(results))
      const points = (name: string) =>
        streamCounts.map(
          (streams) =>
            [
              streams,
              medianOf(results, name, (speed) => speed.byStreams.get(streams)!.tokensPerSecond),
            ] as const,
        )
      byStreams = [...results.keys()].map((name) => ({ name, points: points(name) }))
    }
    if (wanted.includes("growth")) {
      const plain = await keep(openRakit("without", spec({ speculation: false })))
      byContext = await measureGrowth(sides[0]!, long, { contexts, rounds, tokens })
      tables.push(growthTable(byContext, contexts))
      tables.push(await measureGuessing(sides[0]!, plain, { rounds, tokens }))
    }
    if (wanted.includes("schema"))
      tables.push(await measureSchemas(sides[0]!, prompts.slice(0, 8), rounds, tokens))
    if (wanted.includes("determinism")) {
      const options = { spec: spec(), rounds, tokens }
      const again = await keep(openRakit("again", spec()))
      tables.push(await measureAnswers(sides[0]!, again, prompts, options))
      tables.push(await measurePrice(options))
    }
    for (const side of open.splice(0)) side.stop()
  }
  const sizes = String(values.sizes ?? "135M,360M,1B").split(",")
  const shapes = { sizes, model, folder, spec: spec(), rounds: 1, tokens: 24 }
  if (wanted.includes("sizes")) tables.push(await measureSizes(shapes))
  if (wanted.includes("precisions")) tables.push(await measurePrecisions(shapes))
  if (wanted.includes("served")) {
    const gap = await measureLoopGap(model, 8, seconds)
    const row = (name: string, { p50Ms, p99Ms, maxMs }: typeof gap.idle) => [
      name,
      figure(p50Ms),
      figure(p99Ms),
      figure(maxMs),
    ]
    tables.push({
      title: "How long the thread that serves HTTP is held up, ms",
      head: ["", "median", "p99", "longest"],
      rows: [row("idle", gap.idle), row("8 streams over HTTP", gap)],
    })
  }
  for (const { title, head, rows } of tables) printTable(title, head, rows)
  const memory = wanted.includes("memory") ? await measureMemory(requests) : []
  if (memory.length)
    printTable(
      "Memory, MB",
      ["requests", "resident"],
      memory.map((sample) => [String(sample.requests), figure(sample.residentMb)]),
    )
  const command = `node --import tsx bench/chat.ts${strings.map((name) => (values[name] && name !== "model" ? ` --${name} ${values[name]}` : "")).join("")}`
  return { machine, command, tables, byStreams, byContext, memory }
}

printMachine("The chat engine against node-llama-cpp, and how its cost grows", codeInWords)
try {
  const report = await run()
  // a partial run would overwrite the full report
  if (strings.every((name) => name !== "only" || values[name] === undefined)) writeReport(report)
  printLoadAfter(startedMs)
} finally {
  for (const side of open) side.stop()
  rmSync(folder, { recursive: true, force: true })
}
