// What structured output keeps, and what it costs: `python3 bench/schemas/collect.py FOLDER && node
// --import tsx bench/schemas.ts FOLDER model.gguf [every] [words of what to list ...]`
// Documents are written for one schema of `every` (1).
import { join } from "node:path"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { figure, printTable } from "./measure/table.ts"
import { Corpus, type CorpusCount } from "./schemas/corpus.ts"
import { jsonIn, vocabularyOf } from "./schemas/sources.ts"
import { measureSuite, type SuiteCount } from "./schemas/suite.ts"

const startedMs = performance.now()
const [folder, model, every = "1", ...lists] = process.argv.slice(2)
if (!folder || !model) throw new Error("name the folder of collect.py, and a chat model (GGUF)")

const list = (title: string, lines: readonly string[]): void => {
  if (!lists.some((word) => title.includes(word))) return
  console.log(`\n${title}`)
  for (const line of lines) console.log(`  ${line}`)
}

const quantile = (sorted: Float64Array, part: number): string =>
  sorted.length > 0
    ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!.toFixed(3)
    : "-"

const suites = (): void => {
  const parts: readonly (readonly [string, SuiteCount])[] = [
    ["required", measureSuite(join(folder, "suite"), (file) => !file.includes("/optional/"))],
    [
      "optional",
      measureSuite(
        join(folder, "suite"),
        (file) => file.includes("/optional/") && !file.includes("/format"),
      ),
    ],
    ["formats", measureSuite(join(folder, "suite"), (file) => file.includes("/format"))],
  ]
  const rows = parts.map(([name, count]) => [
    name,
    ...[
      count.schemas,
      count.kept,
      count.unsatisfiable,
      count.refused,
      count.documents,
      count.passing,
      count.wronglyAccepted.length,
      count.wronglyRejected.length,
    ].map(String),
  ])
  printTable(
    "JSON Schema's own tests, drafts 4 to 2020-12; documents of schemas that are not refused, in any order of properties",
    [
      "part",
      "schemas",
      "kept",
      "never satisfied",
      "refused by name",
      "documents",
      "passing",
      "wrongly accepted",
      "wrongly rejected",
    ],
    rows,
  )
  for (const [name, count] of parts) {
    list(`${name} accepted`, count.wronglyAccepted)
    list(`${name} rejected`, count.wronglyRejected)
  }
}

const rowOf = (name: string, count: CorpusCount): readonly string[] => {
  const refused = [...count.refused.values()].reduce((sum, one) => sum + one, 0)
  return [
    name,
    ...[
      count.schemas,
      count.kept,
      refused,
      count.invalid.length,
      count.unsatisfiable.length,
      count.tooComplex.length,
      count.documents,
      count.wronglyAccepted.length,
      count.unchecked,
      count.unclosed.length,
      count.failedMasks.length,
    ].map(String),
  ]
}

const corpora = (): void => {
  const vocabulary = vocabularyOf(model)
  const found = ["real", "functions"].map((part) => {
    const corpus = new Corpus(vocabulary)
    corpus.measure(jsonIn(join(folder, part)), Number(every))
    return [part, corpus.count] as const
  })
  const head = [
    "part",
    "schemas",
    "kept",
    "refused by name",
    "invalid",
    "never satisfied",
    "too complex",
    "documents",
    "wrongly accepted",
    "not checked",
    "not closed",
    "failed",
  ]
  printTable(
    "Schemas that are in use, and documents written by chance under their masks",
    head,
    found.map(([name, count]) => rowOf(name, count)),
  )
  const times = found.map(([name, count]) => {
    const [masks, compiles] = [
      Float64Array.from(count.maskMs).sort(),
      Float64Array.from(count.compileMs).sort(),
    ]
    return [
      name,
      figure(masks.length),
      ...[0.5, 0.9, 0.99, 1].map((part) => quantile(masks, part)),
      ...[0.5, 0.95, 0.99, 1].map((part) => quantile(compiles, part)),
    ]
  })
  printTable(
    `Milliseconds, ${vocabulary.ends.length} tokens`,
    ["part", "masks", "mask p50", "p90", "p99", "most", "compile p50", "p95", "p99", "most"],
    times,
  )
  for (const [name, count] of found) {
    const keywords = [...count.refused]
      .sort((a, b) => b[1] - a[1])
      .map(([keyword, schemas]) => [keyword, String(schemas)])
    printTable(`${name}: refused first for`, ["keyword", "schemas"], keywords)
    for (const what of [
      "wronglyAccepted",
      "invalid",
      "unsatisfiable",
      "tooComplex",
      "unclosed",
      "failedMasks",
    ] as const)
      list(`${name} ${what}`, count[what])
  }
}

printMachine("Structured output", "the sources, through tsx")
suites()
corpora()
printLoadAfter(startedMs)
