// What structured output keeps, and what it costs: `python3 bench/schemas/collect.py FOLDER`, then
// `node --import tsx bench/schemas.ts FOLDER model.gguf RESULTS [--only suite,real,functions]
// [--slice 1/4] [--every 1]`: adds counts to the file RESULTS (JSON lines); documents are written
// for one schema of `every`. `node --import tsx bench/schemas.ts --report RESULTS [words of what to
// list ...]` prints the tables of all counts in the file.
import { appendFileSync } from "node:fs"
import { join } from "node:path"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { Corpus } from "./schemas/corpus.ts"
import { printReport } from "./schemas/report.ts"
import { jsonIn, vocabularyOf } from "./schemas/sources.ts"
import { measureSuite } from "./schemas/suite.ts"

const options = (words: readonly string[]): ReadonlyMap<string, string> =>
  new Map(words.flatMap((word, i) => (word.startsWith("--") ? [[word, words[i + 1] ?? ""]] : [])))

const suiteParts: readonly (readonly [string, (file: string) => boolean])[] = [
  ["required", (file) => !file.includes("/optional/")],
  ["optional", (file) => file.includes("/optional/") && !file.includes("/format")],
  ["formats", (file) => file.includes("/format")],
]

const measure = (
  [folder, model, results]: readonly [string, string, string],
  given: ReadonlyMap<string, string>,
): void => {
  const startedMs = performance.now()
  const only = (given.get("--only") ?? "suite,real,functions").split(",")
  const [slice, slices] = (given.get("--slice") ?? "1/1").split("/").map(Number) as [number, number]
  const save = (part: string, count: object) =>
    appendFileSync(results, `${JSON.stringify({ part, count })}\n`)
  printMachine(`Structured output: ${only.join(", ")}, slice ${slice} of ${slices}`, "the sources")
  if (only.includes("suite"))
    for (const [part, isWanted] of suiteParts)
      save(part, measureSuite(join(folder, "suite"), isWanted))
  const corpora = ["real", "functions"].filter((part) => only.includes(part))
  if (corpora.length > 0) {
    const vocabulary = vocabularyOf(model)
    for (const part of corpora) {
      const corpus = new Corpus(vocabulary)
      const all = jsonIn(join(folder, part)).filter((_, i) => i % slices === slice - 1)
      corpus.measure(all, Number(given.get("--every") ?? "1"))
      save(part, corpus.count)
    }
  }
  printLoadAfter(startedMs)
}

const words = process.argv.slice(2)
const given = options(words)
const [folder, model, results] = words
if (given.has("--report")) printReport(given.get("--report")!, words.slice(2))
else if (folder && model && results) measure([folder, model, results], given)
else throw new Error("name the folder of collect.py, a chat model (GGUF), and a file for results")
