import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { CohereClientV2 } from "cohere-ai"
import OpenAI from "openai"
import { expect, vi } from "vitest"
import { parse, stringify } from "yaml"
import { completedBatch, startBatch } from "../batch-client.ts"
import { openOtlpCollector } from "../otlp-collector.ts"
import { type Platform, startPlatform } from "../platform.ts"

export const root = join(import.meta.dirname, "../..")
export const scrapeToken = "a-token-of-the-scraper"
export const collectorKey = "a-key-of-the-collector"
export const clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
export const clientSpan = "00f067aa0ba902b7"

const ask = (content: string, more: object = {}) => ({
  model: "svc-lyt",
  messages: [{ role: "user" as const, content }],
  ...more,
})

/** Three lines that succeed and one that can't: its model refuses the request. */
const runBatch = async (client: OpenAI) => {
  const bodies = {
    a: ask("a b"),
    b: ask("c"),
    c: ask("d e f"),
    refused: ask("x", { max_tokens: 100_000 }),
  }
  return completedBatch(client, await startBatch(client, "/v1/chat/completions", bodies))
}

/** Stops to read after its second chunk. */
const cutStream = async (client: OpenAI) => {
  const stream = await client.chat.completions.create({
    ...ask("word ".repeat(200)),
    model: "svc-omni",
    stream: true,
  })
  let seen = 0
  for await (const _ of stream) if (++seen === 3) break
  stream.controller.abort()
}

/** Three whole or streamed chats, two refused and one cut; an embedding, a rerank, and a batch. */
const traffic = async (client: OpenAI, platform: Platform): Promise<void> => {
  await client.chat.completions.create(ask("one two three"), {
    headers: { traceparent: `00-${clientTrace}-${clientSpan}-01` },
  })
  await client.chat.completions.create(ask("one two three four", { max_tokens: 2 }))
  for await (const _ of await client.chat.completions.create({ ...ask("a b c"), stream: true }));
  await client.chat.completions.create(ask("x", { max_tokens: 100_000 })).then(
    () => expect.unreachable(),
    () => {},
  )
  await client.chat.completions.create(ask("x", { model: "made-up-by-a-client" })).then(
    () => expect.unreachable(),
    () => {},
  )
  await cutStream(client)
  await client.embeddings.create({ model: "svc-embed", input: ["a b", "c"] })
  const cohere = new CohereClientV2({
    token: platform.credentials.api_key,
    environment: platform.url,
  })
  await cohere.rerank({ model: "svc-rerank", query: "red", documents: ["a", "b"], topN: 1 })
  const batch = await runBatch(client)
  expect(batch.request_counts).toMatchObject({ completed: 3, failed: 1 })
}

export interface LogLine {
  readonly event: string
  readonly level: string
  readonly route: string
  readonly status: number
  readonly cut?: boolean
  readonly [field: string]: unknown
}

const logLines = (platform: Platform): readonly LogLine[] =>
  platform
    .output()
    .stderr.split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))

const writeConfig = (folder: string, collector: string): string => {
  const fixture = parse(readFileSync(join(root, "config/test.yaml"), "utf8"))
  const { "../testing/fakes/backend.ts": _, ...plugins } = fixture.plugins
  const file = join(folder, "observed.yaml")
  writeFileSync(
    file,
    stringify({
      ...fixture,
      server: { ...fixture.server, metrics: { bearer: "${METRICS_TOKEN}" } },
      otel: { endpoint: collector, headers: { "x-api-key": "${COLLECTOR_KEY}" } },
      plugins: {
        chaos: { faults: [] },
        ...plugins,
        "safety-images": {},
        "backend-remote": {},
        [join(root, "testing/fakes/backend.ts")]: {},
      },
    }),
  )
  return file
}

/**
 * A server with models that have no weights, with a token for /metrics and a collector of traces,
 * after real clients have asked it.
 */
export const openObservedServer = async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-observed-"))
  const collector = await openOtlpCollector()
  const platform = await startPlatform({
    config: writeConfig(folder, collector.url),
    env: {
      RAKIT_TEST_BATCH_POLL_MS: "100",
      METRICS_TOKEN: scrapeToken,
      COLLECTOR_KEY: collectorKey,
    },
  })
  const client = new OpenAI({
    baseURL: `${platform.url}/v1`,
    apiKey: platform.credentials.api_key,
    maxRetries: 0,
  })
  const finished = () => logLines(platform).filter(({ event }) => event === "request.finished")
  await traffic(client, platform)
  await vi.waitFor(() => expect(finished().some(({ cut }) => cut === true)).toBe(true), {
    timeout: 10_000,
  })
  return {
    platform,
    client,
    collector,
    /** The lines of requests in the log. */
    finished,
    scrape: async (): Promise<string> => {
      const authorization = `Bearer ${scrapeToken}`
      const reply = await fetch(`${platform.url}/metrics`, { headers: { authorization } })
      expect(reply.status).toBe(200)
      return reply.text()
    },
    close: async () => {
      await platform.close()
      collector.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
export type ObservedServer = Awaited<ReturnType<typeof openObservedServer>>
