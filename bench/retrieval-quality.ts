// nDCG@10 of POST /v1/retrieval as it is served (plain, hybrid, reranked) over whole collections,
// against BM25 and against the embedding model alone. The collections are rebuilt from Debian
// packages (apt-get, dpkg-deb) and a file of this repository. `npm run build && RAKIT_MODELS=folder
// node --import tsx bench/retrieval-quality.ts [--queries N] [--only perlfaq] [--skip-rerank]`
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { codeInWords } from "./deployment/code.ts"
import { atOnce } from "./measure/at-once.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { median } from "./measure/rounds.ts"
import { figure, printTable } from "./measure/table.ts"
import { type Collection, collect, type Judged } from "./retrieval/collections.ts"
import { bm25, ndcg } from "./retrieval/ranking.ts"
import { serveRetrieval, upload } from "./retrieval/served.ts"

const { values } = parseArgs({
  options: {
    queries: { type: "string", default: "1000" },
    only: { type: "string", default: "" },
    "skip-rerank": { type: "boolean", default: false },
  },
})

/** Ranks the documents of a collection, best first. */
type Ranker = (query: string) => Promise<readonly number[]> | readonly number[]

interface Measured {
  readonly ndcg: number
  readonly medianMs: number
}

const measure = async (rank: Ranker, queries: readonly Judged[]): Promise<Measured> => {
  const times: number[] = []
  let sum = 0
  for (const { text, grades } of queries) {
    const startedMs = performance.now()
    const ranked = await rank(text)
    times.push(performance.now() - startedMs)
    sum += ndcg(ranked, grades)
  }
  return { ndcg: sum / queries.length, medianMs: median(times) }
}

const folder = mkdtempSync(join(tmpdir(), "rakit-collections-"))
const startedMs = performance.now()
printMachine("Retrieval as it is served: nDCG@10", codeInWords)
const { client, close } = await serveRetrieval()

/** One vector a document, which is the model's reading of all of it; best first by cosine. */
const embedder = async ({ documents }: Collection): Promise<Ranker> => {
  const embed = async (input: string[]): Promise<readonly (readonly number[])[]> =>
    (await client.embeddings.create({ model: "svc-embed", input })).data.map((d) => d.embedding)
  const groups = Array.from({ length: Math.ceil(documents.length / 16) }, (_, i) =>
    documents.slice(i * 16, i * 16 + 16),
  )
  const vectors = (await atOnce(groups, 4, embed)).flat()
  const dot = (a: readonly number[], b: readonly number[]) =>
    a.reduce((sum, value, i) => sum + value * b[i]!, 0)
  return async (query) => {
    const [asked] = await embed([query])
    const scores = vectors.map((vector) => dot(vector, asked!))
    return scores.map((_, i) => i).sort((a, b) => scores[b]! - scores[a]!)
  }
}

interface Results {
  readonly results: readonly { readonly file_id: string }[]
}

/** The files of the best chunks, in their order, each once. */
const retriever = (files: readonly string[], fields: object): Ranker => {
  const numbers = new Map(files.map((id, i) => [id, i]))
  return async (query) => {
    const body = { query, file_ids: files, ...fields }
    const { results } = await client.post<Results>("/retrieval", { body })
    return [...new Set(results.map(({ file_id }) => numbers.get(file_id)!))]
  }
}

/** So many results that they are of ten documents and more; the reranker reads 32 places. */
const ways = {
  "/v1/retrieval": { top_k: 50 },
  "hybrid: true": { top_k: 50, hybrid: true },
  "rerank: true": { top_k: 32, rerank: true },
  "hybrid and rerank": { top_k: 32, hybrid: true, rerank: true },
}

/** Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009) with equal weights and k = 60. */
const fused =
  (one: Ranker, other: Ranker): Ranker =>
  async (query) => {
    const scores = new Map<number, number>()
    for (const ranked of [await one(query), await other(query)])
      for (const [at, document] of ranked.entries())
        scores.set(document, (scores.get(document) ?? 0) + 1 / (60 + at + 1))
    return [...scores].sort(([, a], [, b]) => b - a).map(([document]) => document)
  }

const systemsFor = async (
  collection: Collection,
): Promise<readonly (readonly [string, Ranker])[]> => {
  const files = await atOnce(collection.documents, 16, (text, i) =>
    upload(client, `${i}.txt`, text),
  )
  const [words, meaning] = [bm25(collection.documents), await embedder(collection)]
  return [
    ["BM25, whole documents", words],
    ["svc-embed, whole documents", meaning],
    ["these two fused", fused(words, meaning)],
    ...Object.entries(ways)
      .filter(([, fields]) => !("rerank" in fields && values["skip-rerank"]))
      .map(([name, fields]) => [name, retriever(files, fields)] as const),
  ]
}

try {
  const collections = (await collect(folder)).filter(({ name }) => name.includes(values.only))
  for (const collection of collections) {
    const queries = collection.queries.slice(0, Number(values.queries))
    const rows: (readonly string[])[] = []
    for (const [name, rank] of await systemsFor(collection)) {
      const found = await measure(rank, queries)
      rows.push([name, found.ndcg.toFixed(3), figure(found.medianMs)])
    }
    printTable(
      `${collection.name}: ${collection.documents.length} documents, ${queries.length} queries`,
      ["", "nDCG@10", "ms a query"],
      rows,
    )
  }
  printLoadAfter(startedMs)
} finally {
  await close()
  rmSync(folder, { recursive: true, force: true })
}
