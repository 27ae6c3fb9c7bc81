// The embed task against @huggingface/transformers and bare onnxruntime-node on the same weights, and
// how its similarities follow given scores. `npm run build && npm install --prefix bench/peers
// --omit=optional --ignore-scripts --no-package-lock && node --import tsx bench/embed.ts --model
// FOLDER [--rerank FOLDER or FILE.gguf] [--rounds 5] [--ms 4000] [--threads N] [--write]`; `--write`
// puts the result into docs/models.md.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os"
import { basename, join } from "node:path"
import { parseArgs } from "node:util"
import { codeInWords, root } from "./deployment/code.ts"
import { writeExport } from "./embed/onnx-export.ts"
import type { CallTimes } from "./embed/protocol.ts"
import { openSide, type Side } from "./embed/sides.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { spearman } from "./measure/rank-correlation.ts"
import { alternate, medianOf, type Rounds, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    rerank: { type: "string" },
    rounds: { type: "string", default: "5" },
    ms: { type: "string", default: "4000" },
    threads: { type: "string", default: String(availableParallelism()) },
    write: { type: "boolean", default: false },
  },
})
const [rounds, ms] = [Number(values.rounds), Number(values.ms)]
const model = values.model ?? process.env.RAKIT_TEST_EMBED_MODEL
if (!model) throw new Error("name the folder of a BERT encoder with --model")

interface Pair {
  readonly a: string
  readonly b: string
  /** How alike they are: 0 to 5. */
  readonly score: number
  /** By transformers, with all-MiniLM-L6-v2 (embed/make-sts.py). */
  readonly cosine: number
}
const pairs = JSON.parse(
  readFileSync(join(root, "bench/embed/sts.json"), "utf8"),
) as readonly Pair[]
const sentences = pairs.flatMap(({ a, b }) => [a, b])
/** Every other text is a paragraph of five sentences. */
const texts = sentences.flatMap((sentence, i) =>
  i % 2 ? [sentence] : [sentence, sentences.slice(i, i + 5).join(" ")],
)

const [ours, transformers, bare] = ["Rakit", "@huggingface/transformers", "bare onnxruntime-node"]
const hasTransformers = existsSync(join(root, "bench/peers/node_modules/@huggingface/transformers"))
const folder = mkdtempSync(join(tmpdir(), "rakit-embed-bench-"))
const open: Side[] = []
const keep = async (side: Promise<Side>): Promise<Side> => {
  open.push(await side)
  return side
}
const served = "Rakit, POST /v1/embeddings"
const rakit = (task: "embed" | "rerank", path: string) =>
  keep(
    openSide(ours, "embed/rakit-embedder.ts", [task, path, join(folder, "data"), values.threads]),
  )

interface Table {
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const dot = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, value, i) => sum + value * b[i]!, 0)

/** Cosines of the pairs; the vectors of every side have norm 1. */
const cosinesOf = async (side: Side): Promise<readonly number[]> => {
  const cosines: number[] = []
  for (const { a, b } of pairs) {
    const [first, second] = await side.vectors([a, b])
    cosines.push(dot(first!, second!))
  }
  return cosines
}

const similarity = async (sides: readonly Side[]): Promise<Table> => {
  const reference = pairs.map(({ cosine }) => cosine)
  const scores = pairs.map(({ score }) => score)
  const row = (name: string, cosines: readonly number[]) => [
    name,
    spearman(cosines, scores).toFixed(4),
    spearman(cosines, reference).toFixed(4),
    Math.max(...cosines.map((value, i) => Math.abs(value - reference[i]!))).toExponential(1),
  ]
  const rows = [row("transformers (Python), all-MiniLM-L6-v2", reference)]
  for (const side of sides) rows.push(row(side.name, await cosinesOf(side)))
  return {
    title: `Similarity of ${pairs.length} pairs of sentences (bench/embed/sts.json)`,
    head: [
      "",
      "Spearman to the given scores",
      "Spearman to transformers",
      "largest gap of a cosine",
    ],
    rows,
  }
}

/** The ways of asking that are compared: calls in flight, and texts of a call. */
const ways = [
  { title: "one text after the other", callers: 1, size: 1 },
  { title: "32 calls of one text in flight", callers: 32, size: 1 },
  { title: "arrays of 32 texts, one after the other", callers: 1, size: 32 },
]

const speed = async (sides: readonly Side[]): Promise<readonly Table[]> => {
  const tables: Table[] = []
  for (const { title, callers, size } of ways) {
    const calls = { texts, callers, size, ms }
    for (const side of sides) await side.time({ ...calls, ms: ms / 4 })
    const results: Rounds<CallTimes> = await alternate(sides, rounds, (side) => side.time(calls))
    const perSecond = (result: CallTimes) => result.perSecond
    const against = (peer: string) =>
      results.has(peer) ? times(ratioOf(results, ours!, peer, perSecond)) : "-"
    tables.push({
      title: `Embeddings a second, ${title}`,
      head: ["", "texts/s", "ms a call", "Rakit is faster by"],
      rows: sides.map(({ name }) => [
        name,
        figure(medianOf(results, name, perSecond)),
        figure(medianOf(results, name, (result) => result.medianMs)),
        name === ours ? "" : against(name),
      ]),
    })
  }
  return tables
}

/** Eight paragraphs a query. */
const documents = 8
const reranking = async (path: string): Promise<Table> => {
  const side = await rakit("rerank", path)
  const paragraphs = texts.filter((_, i) => i % 3 === 1)
  const asked = sentences.flatMap((query, i) => [
    query,
    ...Array.from({ length: documents }, (_, n) => paragraphs[(i + n) % paragraphs.length]!),
  ])
  const rows: string[][] = []
  for (const callers of [1, 8]) {
    const calls = { texts: asked, callers, size: documents + 1, ms }
    await side.time({ ...calls, ms: ms / 4 })
    const results = await alternate([side], rounds, () => side.time(calls))
    const perSecond = medianOf(results, ours!, (result) => result.perSecond)
    rows.push([
      `${callers} in flight`,
      figure((perSecond * documents) / (documents + 1)),
      figure(medianOf(results, ours!, (result) => result.medianMs)),
    ])
  }
  return {
    title: `Reranking with ${basename(path)}, ${documents} paragraphs a request`,
    head: ["", "documents/s", "ms a request"],
    rows,
  }
}

const markdown = ({ title, head, rows }: Table): string =>
  [
    `### ${title}`,
    "",
    `| ${head.join(" | ")} |`,
    `|${head.map((_, i) => (i ? " ---: |" : " --- |")).join("")}`,
    ...rows.map((row) => `| ${row.join(" | ")} |`),
  ].join("\n")

const heading = "## Speed and similarity of the default embedding model"

/** Replaces this bench's section of docs/models.md, or adds it. */
const writeSection = (machine: string, tables: readonly Table[]): void => {
  const page = join(root, "docs/models.md")
  const text = readFileSync(page, "utf8")
  const from = text.indexOf(heading)
  const to = text.indexOf("\n## ", from + 1)
  const section = [heading, "", machine, "", tables.map(markdown).join("\n\n"), ""].join("\n")
  const before = from < 0 ? `${text.trimEnd()}\n\n` : text.slice(0, from)
  const after = from < 0 || to < 0 ? "" : text.slice(to)
  writeFileSync(page, `${before}${section}${after}`)
}

const measure = async (path: string): Promise<readonly Table[]> => {
  await writeExport(path, folder, texts)
  const sides = [await rakit("embed", path)]
  if (hasTransformers)
    sides.push(await keep(openSide(transformers!, "peers/transformers-js.js", [folder])))
  else console.warn("@huggingface/transformers is not installed under bench/peers")
  sides.push(await keep(openSide(bare!, "peers/bare-onnx.js", [folder])))
  sides.push(await keep(openSide(served, "embed/http-embedder.ts", [path, values.threads])))
  const tables = [await similarity(sides), ...(await speed(sides))]
  for (const side of open.splice(0)) side.stop()
  return values.rerank ? [...tables, await reranking(values.rerank)] : tables
}

const startedMs = performance.now()
printMachine("Embeddings against transformers.js and bare ONNX Runtime", codeInWords)
const machine = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"}), Node ${process.version}, load ${loadavg()[0]!.toFixed(1)} before the first round; medians of ${rounds} alternating rounds of ${ms} ms, ratios within a round; fp32, ${values.threads} threads, ${texts.length} texts, a third of them paragraphs; the first row is the model through its task, as peers are, in one process with the caller, and the last a whole server on the same cores (HTTP client, authentication, limits, hold and settlement on disk included), to which no peer has a counterpart; texts of bare onnxruntime-node are tokenized beforehand. \`node --import tsx bench/embed.ts --rounds ${rounds} --ms ${ms}${values.rerank ? ` --rerank ${basename(values.rerank)}` : ""}\``
try {
  const tables = await measure(model)
  for (const { title, head, rows } of tables) printTable(title, head, rows)
  if (values.write) writeSection(machine, tables)
  printLoadAfter(startedMs)
} finally {
  for (const side of open) side.stop()
  rmSync(folder, { recursive: true, force: true })
}
