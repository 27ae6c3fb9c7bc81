import { setTimeout } from "node:timers/promises"
import OpenAI, { toFile } from "openai"
import { median } from "../measure/rounds.ts"
import { embeddingBody, shortChatBody } from "../path/requests.ts"
import { upload } from "../retrieval/served.ts"
import type { Cluster } from "./cluster.ts"
import type { Costs, SearchCosts, Served } from "./costs.ts"
import { type Load, serve } from "./ladder.ts"
import { costsBetween, type Idle, type Reading } from "./meter.ts"

/** What is measured, and how long. */
export interface KindOptions {
  readonly rounds: number
  readonly ms: number
  readonly lines: number
  readonly batches: number
  readonly chunks: readonly number[]
}

const connections = 64
export const fileBytes = 65_536
export const streamTokens = 50

const words = (count: number): string =>
  Array.from({ length: count }, () => `word${Math.floor(Math.random() * 20_000)}`).join(" ")

const jsonLoad = (cluster: Cluster, path: string, body: object, ms: number): Load => ({
  path,
  bodies: [JSON.stringify(body)],
  keys: cluster.keys.slice(1),
  connections,
  ms,
})

const boundary = "rakit-bench-boundary"
const fileForm = [
  `--${boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch`,
  `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\ncontent-type: application/jsonl\r\n\r\n${"x".repeat(fileBytes)}`,
  `--${boundary}--\r\n`,
].join("\r\n")

/** Requests of clients, each kind alone. */
export const serveKinds = async (
  cluster: Cluster,
  { rounds, ms }: KindOptions,
  idle: Idle,
): Promise<Readonly<Record<"chat" | "chatStream" | "embedding" | "file", Served>>> => {
  const run = (load: Load) => serve(cluster, load, rounds, idle)
  const streamed = {
    model: "svc-stream",
    stream: true,
    max_tokens: streamTokens,
    messages: [{ role: "user", content: words(streamTokens) }],
  }
  return {
    chat: await run(jsonLoad(cluster, "/v1/chat/completions", shortChatBody, ms)),
    chatStream: await run(jsonLoad(cluster, "/v1/chat/completions", streamed, ms)),
    embedding: await run(jsonLoad(cluster, "/v1/embeddings", embeddingBody, ms)),
    file: await run({
      path: "/v1/files",
      bodies: [fileForm],
      headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
      keys: cluster.keys.slice(1),
      connections: 8,
      ms: ms / 2,
    }),
  }
}

const clientOf = (cluster: Cluster, key: string): OpenAI =>
  new OpenAI({ apiKey: key, baseURL: `${cluster.urls[0]}/v1`, maxRetries: 5 })

const startBatch = async (client: OpenAI, lines: number): Promise<string> => {
  const text = Array.from({ length: lines }, (_, n) =>
    JSON.stringify({
      custom_id: `line-${n}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: shortChatBody,
    }),
  ).join("\n")
  const { id: input_file_id } = await client.files.create({
    purpose: "batch",
    file: await toFile(Buffer.from(text), "lines.jsonl"),
  })
  const endpoint = "/v1/chat/completions"
  const { id } = await client.batches.create({ input_file_id, endpoint, completion_window: "24h" })
  return id
}

const ended = async ({ meter }: Cluster, ids: readonly string[]): Promise<void> => {
  for (;;) {
    const [row] = await meter.query(
      "SELECT count(*)::int AS n, max(to_jsonb(b)::text) FILTER (WHERE status = 'failed') AS failed FROM batches_batch b WHERE status IN ('completed', 'failed', 'expired', 'cancelled')",
    )
    if (row?.failed) throw new Error(`a batch failed: ${row.failed}`)
    if (Number(row?.n) >= ids.length) return
    await setTimeout(200)
  }
}

/** Runs `count` units and reads before and after. */
const metered = async (
  { meter, pids }: Cluster,
  count: number,
  idle: Idle,
  run: () => Promise<void>,
): Promise<Costs> => {
  const before = await meter.read(pids)
  const startedMs = performance.now()
  await run()
  const seconds = (performance.now() - startedMs) / 1000
  const after: Reading = await meter.read(pids)
  return { ...costsBetween(before, after, count, idle), perSecond: round(count / seconds) }
}

const round = (value: number): number => Number(value.toPrecision(4))

/** The run whose CPU time is the middle one: figures of one run go together. */
const middleRun = <Run extends Costs>(runs: readonly Run[]): Run => {
  const cpu = (run: Run) => run.rakitCpuUs + run.postgresCpuUs
  return runs.toSorted((a, b) => cpu(a) - cpu(b))[Math.floor((runs.length - 1) / 2)]!
}

/** A line of a chat batch, with its part of the batch's files. */
export const runLines = async (
  cluster: Cluster,
  { rounds, lines }: KindOptions,
  idle: Idle,
): Promise<Costs> => {
  const done: string[] = []
  const client = clientOf(cluster, cluster.keys[1]!)
  const runs: Costs[] = []
  for (let n = 0; n <= rounds; n++) {
    const run = await metered(cluster, lines, idle, async () => {
      done.push(await startBatch(client, lines))
      await ended(cluster, done)
    })
    if (n > 0) runs.push(run) // the first one warms up
  }
  return middleRun(runs)
}

const webhooksEach = 20

/**
 * A delivery: batches of one line by an account with twenty webhooks, less the same by one without.
 */
export const deliver = async (
  cluster: Cluster,
  receiver: { readonly url: string; readonly received: readonly unknown[] },
  { batches }: KindOptions,
  idle: Idle,
): Promise<Costs> => {
  const done = (await cluster.meter.query("SELECT id FROM batches_batch")).map(({ id }) =>
    String(id),
  )
  const [plain, hooked] = [cluster.keys[2]!, cluster.keys[3]!].map((key) =>
    clientOf(cluster, key),
  ) as [OpenAI, OpenAI]
  for (let n = 0; n < webhooksEach; n++)
    await hooked.post("/webhooks", {
      body: { url: `${receiver.url}/${n}`, events: ["batch.completed"] },
    })
  const runAll = async (client: OpenAI) => {
    for (let n = 0; n < batches; n++) done.push(await startBatch(client, 1))
    await ended(cluster, done)
  }
  const without = await metered(cluster, batches, idle, () => runAll(plain))
  const deliveries = batches * webhooksEach
  const settled = async () => {
    const [row] = await cluster.meter.query(
      "SELECT count(*)::int AS n FROM webhook_delivery WHERE state = 'succeeded'",
    )
    return Number(row?.n) >= deliveries
  }
  const withThem = await metered(cluster, batches, idle, async () => {
    await runAll(hooked)
    while (!(await settled())) await setTimeout(50)
  })
  return differenceOf(withThem, without, deliveries)
}

/** Costs of what the first did more, for each of `count` units. */
export const differenceOf = (more: Costs, less: Costs, count: number): Costs => {
  const each = (a: number, b: number) =>
    round(Math.max(0, (a * more.count - b * less.count) / count))
  const seconds = more.count / more.perSecond
  const rows = Object.entries(more.rows).map(([table, now]) => {
    const then = less.rows[table] ?? { inserted: 0, updated: 0, deleted: 0 }
    return [
      table,
      {
        inserted: each(now.inserted, then.inserted),
        updated: each(now.updated, then.updated),
        deleted: each(now.deleted, then.deleted),
      },
    ] as const
  })
  const bytes = Object.entries(more.bytes).map(
    ([table, now]) => [table, each(now, less.bytes[table] ?? 0)] as const,
  )
  const figures = [
    "rakitCpuUs",
    "postgresCpuUs",
    "statements",
    "transactions",
    "walBytes",
    "flushes",
  ]
  return {
    ...(Object.fromEntries(
      figures.map((key) => [
        key,
        each(more[key as keyof Costs] as number, less[key as keyof Costs] as number),
      ]),
    ) as Pick<
      Costs,
      "rakitCpuUs" | "postgresCpuUs" | "statements" | "transactions" | "walBytes" | "flushes"
    >),
    count,
    perSecond: round(count / seconds),
    rows: Object.fromEntries(
      rows.filter(([, row]) => row.inserted + row.updated + row.deleted >= 0.05),
    ),
    bytes: Object.fromEntries(bytes.filter(([, n]) => n >= 1)),
  }
}

/** Text of about this many chunks: 1,000 characters, of which 200 are those of the one before. */
const textOf = (chunks: number): string => {
  const paragraphs: string[] = []
  for (let length = 0; length < chunks * 800; ) {
    const paragraph = words(80)
    length += paragraph.length + 2
    paragraphs.push(paragraph)
  }
  return paragraphs.join("\n\n")
}

/** Fills one account's index to each size in turn, and searches it there. */
export const searchIndexes = async (
  cluster: Cluster,
  { rounds, ms, chunks: sizes }: KindOptions,
  idle: Idle,
): Promise<{ readonly chunk: Costs; readonly search: readonly SearchCosts[] }> => {
  const key = cluster.keys[4]!
  const client = clientOf(cluster, key)
  const chunksNow = async () =>
    Number((await cluster.meter.query("SELECT count(*)::int AS n FROM retrieval_chunk"))[0]?.n)
  const search: SearchCosts[] = []
  let chunk: Costs | undefined
  for (const size of sizes) {
    const [before, text] = [await chunksNow(), textOf(size - (await chunksNow()))]
    const ingested = await metered(cluster, 1, idle, async () => {
      await upload(client, `size-${size}.txt`, text)
    })
    const added = (await chunksNow()) - before
    chunk = differenceOf(ingested, { ...ingested, count: 0 }, added)
    const firstMs = await timed(() => client.post("/retrieval", { body: { query: words(8) } }))
    const bodies = Array.from({ length: 200 }, () => JSON.stringify({ query: words(8), top_k: 5 }))
    const job = { path: "/v1/retrieval", bodies, keys: [key], connections: 8, ms }
    const served = await serve(cluster, job, rounds, idle)
    search.push({ ...served, chunks: before + added, firstMs: round(firstMs) })
  }
  return { chunk: chunk!, search }
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

export const middleOfFlushes = (runs: readonly { before: Reading; after: Reading }[]): number =>
  round(
    median(
      runs.map(
        ({ before, after }) => (after.flushMs - before.flushMs) / (after.flushes - before.flushes),
      ),
    ),
  )
