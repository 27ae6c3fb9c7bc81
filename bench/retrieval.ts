// How long a search of vectors takes: over 100,000 chunks of one account, and over 1,000 accounts of
// 100, against a plain loop over the same vectors in memory. `node --import tsx bench/retrieval.ts
// [--rounds 3] [--chunks 100000] [--accounts 1000]`. Embedded PostgreSQL, and the server of
// RAKIT_TEST_PGVECTOR_URL where it is set: exact and HNSW.
import { monitorEventLoopDelay } from "node:perf_hooks"
import { parseArgs } from "node:util"
import { Effect } from "effect"
import type { Tenant } from "../core/index.ts"
import {
  type VectorFixture,
  vectorFixture,
} from "../plugins/endpoint-retrieval/testing/vector-fixture.ts"
import { openVectorStore } from "../plugins/endpoint-retrieval/vectors/open-vector-store.ts"
import type { VectorHit, VectorSpace } from "../plugins/endpoint-retrieval/vectors/vector-store.ts"
import { codeInWords } from "./deployment/code.ts"
import { startEmbedded } from "./deployment/embedded-postgres.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { alternate, median, medianOf, percentile, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    chunks: { type: "string", default: "100000" },
    accounts: { type: "string", default: "1000" },
  },
})
const [rounds, chunks, accounts] = [values.rounds, values.chunks, values.accounts].map(Number)
const startedMs = performance.now()
const [limit, queriesOfRound, chunksOfDocument, chunksOfSmall] = [10, 100, 1000, 100]
const space: VectorSpace = { id: "bench", dimensions: 384 }

const gaussian = () =>
  Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random())
const topics = Array.from({ length: 500 }, () =>
  Float32Array.from({ length: space.dimensions }, gaussian),
)
/** Texts of a topic are near each other, some more than others. */
const someVector = (): Float32Array => {
  const topic = topics[Math.floor(Math.random() * topics.length)]!
  const nearness = 2 * Math.random()
  const vector = topic.map((value) => value * nearness + gaussian())
  const norm = Math.hypot(...vector)
  return vector.map((value) => value / norm)
}
const some = (count: number) => Array.from({ length: count }, someVector)

const large: Tenant = { account: "large", mode: "live" }
const small = (n: number): Tenant => ({ account: `small-${n}`, mode: "live" })
const largeDocuments = Array.from({ length: Math.ceil(chunks! / chunksOfDocument) }, (_, i) =>
  some(Math.min(chunksOfDocument, chunks! - i * chunksOfDocument)),
)
const allOfLarge = largeDocuments.flat()

interface Side {
  readonly name: string
  search(tenant: Tenant, vector: Float32Array): Promise<readonly VectorHit[]>
  close(): Promise<void>
}

/** What the search is measured against. */
const loop: Side = {
  name: "a plain loop in memory",
  search: async (_, vector) => {
    const hits = allOfLarge.map((stored, index) => {
      let score = 0
      for (let i = 0; i < vector.length; i++) score += vector[i]! * stored[i]!
      return { document: 0n, index, score }
    })
    return hits.sort((a, b) => b.score - a.score).slice(0, limit)
  },
  close: async () => {},
}

const fill = async (fixture: VectorFixture): Promise<void> => {
  for (const vectors of largeDocuments) await fixture.add(large, space, vectors)
  for (let n = 0; n < accounts!; n++) await fixture.add(small(n), space, some(chunksOfSmall))
}

const openSide = async (name: string, settings: object, server?: string): Promise<Side> => {
  const fixture = await vectorFixture(openVectorStore, settings, server)
  await fill(fixture)
  const search: Side["search"] = (tenant, vector) =>
    Effect.runPromise(fixture.store.search({ tenant, space, vector, limit }))
  if (name.includes("HNSW")) {
    await search(large, someVector())
    while (!fixture.log.lines.some(({ event }) => event.startsWith("retrieval.index_")))
      await new Promise((resolve) => setTimeout(resolve, 200))
  }
  return { name, search, close: fixture.close }
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const started = performance.now()
  await work()
  return performance.now() - started
}

interface Round {
  readonly p50: number
  readonly p95: number
  /** The longest time that the event loop was held up. */
  readonly held: number
}

const measure = async (search: (n: number) => Promise<unknown>, count: number): Promise<Round> => {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const all: number[] = []
  for (let n = 0; n < count; n++) all.push(await timed(() => search(n)))
  delay.disable()
  return { p50: median(all), p95: percentile(all, 0.95), held: delay.max / 1e6 }
}

const printRounds = async (
  title: string,
  sides: readonly Side[],
  run: (side: Side) => Promise<Round>,
) => {
  const results = await alternate(sides, rounds!, run)
  const against = sides[0]!.name
  printTable(
    title,
    ["", "p50 ms", "p95 ms", "p95 to the first", "event loop held ms"],
    sides.map(({ name }) => [
      name,
      figure(medianOf(results, name, ({ p50 }) => p50)),
      figure(medianOf(results, name, ({ p95 }) => p95)),
      times(ratioOf(results, name, against, ({ p95 }) => p95)),
      figure(medianOf(results, name, ({ held }) => held)),
    ]),
  )
}

/** Parts of the true best that each side finds, by the cosine of the last of them. */
const printRecall = async (sides: readonly Side[]): Promise<void> => {
  const queries = some(50)
  const found = sides.map(() => 0)
  for (const query of queries) {
    const last = (await loop.search(large, query)).at(-1)!.score - 1e-3
    for (const [i, side] of sides.entries())
      found[i]! += (await side.search(large, query)).filter(({ score }) => score >= last).length
  }
  printTable(
    `Recall@${limit}`,
    ["", "found"],
    sides.map(({ name }, i) => [name, `${figure((100 * found[i]!) / (limit * queries.length))} %`]),
  )
}

printMachine("Searches of vectors", codeInWords)
const stop = await startEmbedded({ maxConnections: 20 })
const server = process.env.RAKIT_TEST_PGVECTOR_URL
const sides = [
  await openSide("own exact scan, embedded", {}),
  ...(server
    ? [
        await openSide("pgvector, exact", {}, server),
        await openSide("pgvector, HNSW", { index: "hnsw" }, server),
      ]
    : []),
]
const first = await Promise.all(
  sides.map(
    async ({ name, search }) => [name, await timed(() => search(large, someVector()))] as const,
  ),
)
printTable(
  `The first search of an account of ${chunks} chunks`,
  ["", "ms"],
  first.map(([name, ms]) => [name, figure(ms)]),
)
await printRounds(`One account of ${chunks} chunks`, [loop, ...sides], ({ search }) =>
  measure(() => search(large, someVector()), queriesOfRound),
)
await printRecall(sides)
for (const when of ["for the first time", "again"]) {
  const ofAccount = ({ search }: Side) =>
    measure((n) => search(small((n * 7) % accounts!), someVector()), accounts!)
  const results = await alternate(sides, 1, ofAccount)
  printTable(
    `${accounts} accounts of ${chunksOfSmall} chunks, ${when}`,
    ["", "p50 ms", "p95 ms", "event loop held ms"],
    sides.map(({ name }) => [
      name,
      ...(["p50", "p95", "held"] as const).map((key) =>
        figure(medianOf(results, name, (one) => one[key])),
      ),
    ]),
  )
}
for (const { close } of sides) await close()
await stop()
printLoadAfter(startedMs)
