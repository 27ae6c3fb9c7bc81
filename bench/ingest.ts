// Reading PDFs as ingest does: pages/s, memory, how each file ends, and its words against
// pdftotext's where Poppler is installed. `npm run build && node --import tsx bench/ingest.ts FOLDER
// [--most 1000] [--processes 1] [--list]`; bench/ingest/hostile.py writes broken and hostile files.
// Interrupted (SIGINT), it prints what it has read.
import { readdirSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import { parseArgs } from "node:util"
import { Effect, Exit, Schema, Scope } from "effect"
import { codeInWords, load } from "./deployment/code.ts"
import { childrenBytes } from "./ingest/memory.ts"
import { type Compared, compare, countingLog, readFile } from "./ingest/read-files.ts"
import { hasPoppler } from "./ingest/word-recall.ts"
import { atOnce } from "./measure/at-once.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { median, percentile } from "./measure/rounds.ts"
import { figure, printTable } from "./measure/table.ts"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    most: { type: "string", default: "100000" },
    processes: { type: "string", default: "1" },
    list: { type: "boolean", default: false },
  },
})
const folder = resolve(positionals[0] ?? ".")
const processes = Number(values.processes)
const mb = (bytes: number) => Math.round(bytes / 2 ** 20)
const sum = (list: readonly number[]) => list.reduce((all, one) => all + one, 0)

/** Spread over the whole folder where there are more than `most`. */
const filesIn = (most: number): readonly string[] => {
  const all = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.pdf$/i.test(name))
    .sort()
  const step = Math.max(1, all.length / most)
  return Array.from({ length: Math.min(most, all.length) }, (_, i) =>
    join(folder, all[Math.floor(i * step)]!),
  )
}

const reading = await load<
  typeof import("../plugins/endpoint-retrieval/reading/document-reader.ts")
>("plugins/endpoint-retrieval/reading/document-reader")
const { Settings } = await load<typeof import("../plugins/endpoint-retrieval/settings.ts")>(
  "plugins/endpoint-retrieval/settings",
)
const settings = Schema.decodeSync(Settings)({})
const { log, lines } = countingLog()
const scope = Scope.makeUnsafe()
const reader = await Effect.runPromise(
  Scope.provide(
    reading.makeDocumentReader({
      log,
      processes,
      memoryMb: settings.extractionMb,
      limitMs: settings.extractionSeconds * 1000,
      limits: { ...settings, maxChunks: settings.maxChunksPerFile },
    }),
    scope,
  ),
)

const sourceOf = (file: string): string => relative(folder, join(file, "..")) || "."

const rowOf = (name: string, files: readonly Compared[]): readonly string[] => {
  const ends = new Map<string, number>()
  for (const { end } of files) ends.set(end, (ends.get(end) ?? 0) + 1)
  const recalls = files.map(({ recall }) => recall).filter((recall) => !Number.isNaN(recall))
  const others = [...ends].filter(([end]) => end !== "processed")
  return [
    name,
    String(files.length),
    String(ends.get("processed") ?? 0),
    figure(sum(files.map(({ pages }) => pages))),
    recalls.length > 0 ? median(recalls).toFixed(3) : "-",
    recalls.length > 0 ? percentile(recalls, 0.1).toFixed(3) : "-",
    others.map(([end, times]) => `${times} ${end}`).join(", "),
  ]
}

const printSlowest = (files: readonly Compared[]): void => {
  const slowest = [...files].sort((a, b) => b.ms - a.ms).slice(0, 5)
  printTable(
    "Slowest",
    ["", "s", "pages", "end"],
    slowest.map(({ file, ms, pages, end }) => [
      relative(folder, file),
      figure(ms / 1000),
      String(pages),
      end,
    ]),
  )
}

/** Files to look at: with text by pdftotext but not by us, with few of its words, or crashed. */
const printOdd = (files: readonly Compared[]): void => {
  const odd = files.filter(
    ({ end, recall, hasText }) =>
      recall < 0.5 || end.startsWith("crashed") || (hasText && end !== "processed"),
  )
  printTable(
    "To look at",
    ["", "end", "word recall"],
    odd.map(({ file, end, recall }) => [relative(folder, file), end, recall.toFixed(3)]),
  )
}

const printPace = (read: readonly Compared[]): void => {
  const whole = read.filter(({ end, hasText }) => end === "processed" && hasText)
  const pages = sum(whole.map((one) => one.pages))
  const perSecond = (times: readonly number[]) => figure((pages * 1000) / sum(times))
  console.log(
    `\n${figure(pages)} pages of ${whole.length} files with text: ${perSecond(whole.map(({ ms }) => ms))} pages/s of one process; pdftotext, which starts for each file: ${perSecond(whole.map(({ popplerMs }) => popplerMs))}`,
  )
}

const startedMs = performance.now()
printMachine(`Reading PDFs, ${processes} at once`, codeInWords)
let [most, mostAll] = [0, 0]
const watch = setInterval(() => {
  const children = childrenBytes()
  most = Math.max(most, ...children)
  mostAll = Math.max(mostAll, process.memoryUsage().rss + sum(children))
}, 50)
let isInterrupted = false
process.once("SIGINT", () => {
  isInterrupted = true
})
try {
  const poppler = await hasPoppler()
  const all = filesIn(Number(values.most))
  const files: Compared[] = []
  await atOnce(all, processes, async (file) => {
    if (isInterrupted) return
    files.push(await compare(await readFile(reader, file), poppler))
    if (files.length % 50 === 0) console.error(`${files.length} of ${all.length} files`)
  })
  const sources = [...new Set(files.map(({ file }) => sourceOf(file)))].sort()
  printTable(
    `${files.length} files; word recall against ${poppler ? "pdftotext" : "nothing: pdftotext is not installed"}`,
    ["", "files", "processed", "pages", "recall, median", "p10", "else"],
    [
      ...sources.map((source) =>
        rowOf(
          source,
          files.filter(({ file }) => sourceOf(file) === source),
        ),
      ),
      rowOf("all", files),
    ],
  )
  printPace(files)
  console.log(
    `memory   ${mb(most)} MB at most in one process that reads (limit ${settings.extractionMb}), ${mb(mostAll)} MB in all with this bench`,
  )
  console.log(`log      ${lines.length} warnings and errors`)
  printSlowest(files)
  if (values.list) {
    printOdd(files)
    for (const line of lines) console.log(`  ${line}`)
  }
  printLoadAfter(startedMs)
} finally {
  clearInterval(watch)
  await Effect.runPromise(Scope.close(scope, Exit.void))
}
