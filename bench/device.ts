// Models on a GPU (`backend: webgpu`) against the same files on this machine's processor (`backend:
// onnx`), in alternating rounds. `npm run build && node --import tsx bench/device.ts [--tokenizer
// M.gguf] [--sizes 135M,360M,1B] [--precisions auto] [--embed FOLDER] [--streams 1,4,8,16,32]
// [--tokens 32] [--rounds 2] [--software]`: chat models of random weights in real shapes, with the
// tokenizer of a GGUF file, and a BERT; `--software` allows adapters that a processor plays.
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { basename, join } from "node:path"
import { parseArgs } from "node:util"
import { type EngineProcess, openRakit } from "./chat/engine-process.ts"
import { randomModelIn } from "./chat/models.ts"
import { longText } from "./chat/prompts.ts"
import { codeInWords } from "./deployment/code.ts"
import { openSide } from "./embed/sides.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { openDevice, type Place } from "./measure/open-device.ts"
import { alternate, medianOf, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"

const { values } = parseArgs({
  options: {
    tokenizer: { type: "string" },
    sizes: { type: "string", default: "135M,360M,1B" },
    precisions: { type: "string", default: "auto" },
    embed: { type: "string" },
    streams: { type: "string", default: "1,4,8,16,32" },
    tokens: { type: "string", default: "32" },
    rounds: { type: "string", default: "2" },
    ms: { type: "string", default: "2000" },
    threads: { type: "string", default: String(availableParallelism()) },
    software: { type: "boolean", default: false },
  },
})
const [tokens, rounds, ms, threads] = [values.tokens, values.rounds, values.ms, values.threads].map(
  Number,
) as [number, number, number, number]
const streamCounts = values.streams.split(",").map(Number)
const startedMs = performance.now()
const folder = mkdtempSync(join(tmpdir(), "rakit-device-bench-"))
const open = new Set<{ stop(): void }>()
const places: readonly Place[] = ["cpu", values.software ? "software" : "gpu"]
const names = { cpu: "CPU", gpu: "GPU", software: "GPU, played by the CPU" }
const promptTokens = 64
const longTokens = 440

const keep = async <S extends { stop(): void }>(opening: Promise<S>): Promise<S> => {
  const side = await opening
  open.add(side)
  return side
}

const close = () => {
  for (const side of open) side.stop()
  open.clear()
}

interface Chat {
  /** Tokens a second while all streams write, and reading the prompts included. */
  readonly written: readonly number[]
  readonly whole: readonly number[]
  readonly firstTokenMs: number
}

/** Other prompts at each call, so that none is in the prefix cache. */
const chatOf = (ids: readonly number[]) => {
  let at = 0
  const next = (length: number): readonly number[] => {
    at = (at + 7) % (ids.length - length)
    return ids.slice(at, at + length)
  }
  return async (side: EngineProcess): Promise<Chat> => {
    const [written, whole]: [number[], number[]] = [[], []]
    for (const streams of streamCounts) {
      const prompts = Array.from({ length: streams }, () => next(promptTokens))
      const run = await side.run({ prompts, tokens })
      written.push(run.writtenPerSecond)
      whole.push(run.tokensPerSecond)
    }
    const { firstTokenMs } = await side.run({ prompts: [next(longTokens)], tokens: 2 })
    return { written, whole, firstTokenMs }
  }
}

const chat = async (path: string, size: string, precision: string): Promise<void> => {
  const spec = {
    ...{ kind: "decoder" as const, path, graphs: join(folder, "graphs"), threads },
    precision: precision as "auto",
    slots: Math.max(...streamCounts),
    ...{ kvBytes: 4 * 2 ** 30, prefixCacheBytes: 2 ** 28, speculation: false },
  }
  const sides = await Promise.all(places.map((place) => keep(openRakit(names[place], spec, place))))
  const ids = await sides[0]!.encode([longText()])
  const measure = chatOf(ids[0]!)
  // shaders are compiled for each shape of a pass
  const cold: Chat[] = []
  for (const side of sides) cold.push(await measure(side))
  const results = await alternate(sides, rounds, measure)
  const cell = (name: string, of: (chat: Chat) => number) =>
    `${figure(medianOf(results, name, of))} (${times(ratioOf(results, name, names.cpu, of))})`
  printTable(
    `${size} (${Math.round(statSync(path).size / 2 ** 20)} MB), ${precision}: tokens a second (ratio to the CPU)`,
    [
      "",
      ...streamCounts.map((count) => `${count} write`),
      `${Math.max(...streamCounts)}, all in`,
      `first of ${longTokens}, ms`,
      "the first time",
      "ready s",
    ],
    sides.map(({ name, readyMs }, i) => [
      name,
      ...streamCounts.map((_, at) => cell(name, ({ written }) => written[at]!)),
      cell(name, ({ whole }) => whole.at(-1)!),
      figure(medianOf(results, name, ({ firstTokenMs }) => firstTokenMs)),
      figure(cold[i]!.firstTokenMs),
      figure(readyMs / 1000),
    ]),
  )
  close()
}

const sentences = longText().split(". ")
/** Every other text is a paragraph of five sentences. */
const texts = sentences.map((sentence, i) =>
  i % 2 ? sentence : sentences.slice(i, i + 5).join(". "),
)
const ways = [
  { title: "one after the other", callers: 1, size: 1 },
  { title: "32 calls of one", callers: 32, size: 1 },
  { title: "arrays of 32", callers: 1, size: 32 },
  { title: "4 arrays of 256", callers: 4, size: 256 },
]

const embed = async (path: string): Promise<void> => {
  const sides = await Promise.all(
    places.map((place) => {
      const args = ["embed", path, join(folder, place), String(threads), place]
      return keep(openSide(names[place], "embed/rakit-embedder.ts", args))
    }),
  )
  for (const { title, callers, size } of ways) {
    const calls = { texts, callers, size, ms }
    for (const side of sides) await side.time(calls)
    const results = await alternate(sides, rounds, (side) => side.time(calls))
    printTable(
      `${basename(path)}, fp32, texts a second: ${title}`,
      ["", "texts/s", "to the CPU", "ms a call"],
      sides.map(({ name }) => [
        name,
        figure(medianOf(results, name, ({ perSecond }) => perSecond)),
        times(ratioOf(results, name, names.cpu, ({ perSecond }) => perSecond)),
        figure(medianOf(results, name, ({ medianMs }) => medianMs)),
      ]),
    )
  }
  close()
}

const device = (await openDevice(places[1]!))!
printMachine(`Models on ${device.name}`, codeInWords)
try {
  if (values.embed) await embed(values.embed)
  for (const size of values.tokenizer ? values.sizes.split(",") : []) {
    const path = randomModelIn(folder, size, values.tokenizer!)
    for (const precision of values.precisions.split(",")) await chat(path, size, precision)
    rmSync(path)
  }
  printLoadAfter(startedMs)
} finally {
  close()
  rmSync(folder, { recursive: true, force: true })
}
