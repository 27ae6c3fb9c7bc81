import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { parse, stringify } from "yaml"
import { completedBatch } from "../../../testing/batch-client.ts"
import { startPlatform } from "../../../testing/platform.ts"
import { writeGguf } from "./gguf-writer.ts"
import { tinyLlama } from "./tiny-llama.ts"

/**
 * Chat through the whole server, with one model behind the three tiers: a tiny one of random
 * weights, or the one at `model`.
 */
export const openServedChat = async ({
  slots = 2,
  options: more = {},
  model = "",
}: {
  readonly slots?: number
  readonly options?: object
  readonly model?: string
} = {}) => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-served-"))
  const tier = (id: string, maxOutputTokens: number, options: object = {}) => ({
    id,
    task: "chat",
    limits: { contextTokens: id === "svc-lyt" ? 400 : 1_000_000, maxOutputTokens },
    modalities: ["text", "image"],
    capabilities: ["chat", "tool_use", "vision", "thinking"],
    price: { input: 1_000_000, output: 2_000_000 },
    backend: "onnx",
    sources: [{ url: `file:${model || join(folder, "tiny.gguf")}` }],
    options: { ...options, ...more },
  })
  const content = tinyLlama(8)
  writeFileSync(
    join(folder, "tiny.gguf"),
    writeGguf({ ...content, metadata: { ...content.metadata, "llama.context_length": 2048 } }),
  )
  const config = join(import.meta.dirname, "../../../config/test.yaml")
  const fixture = parse(readFileSync(config, "utf8"))
  const { "../testing/fakes/backend.ts": _, ...plugins } = fixture.plugins
  const models = [
    tier("svc-prme", 1_500),
    tier("svc-omni", 1_500, { queueWaitMs: 45_000 }),
    tier("svc-lyt", 100),
  ]
  writeFileSync(
    join(folder, "served.yaml"),
    stringify({
      ...fixture,
      plugins: { ...plugins, "backend-onnx": { threads: 1, slots } },
      models,
    }),
  )
  const start = {
    config: join(folder, "served.yaml"),
    dataDir: join(folder, "data"),
    env: { RAKIT_TEST_BATCH_POLL_MS: "100" },
  }
  mkdirSync(start.dataDir)
  const platform = await startPlatform(start)
  const platforms = [platform]
  const clientOf = ({ url, credentials }: typeof platform) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })
  /** Starts the server again, with what it had, and returns a client of it. */
  const restart = async () => {
    await platforms.at(-1)!.stop()
    const database = new URL(platform.env.DATABASE_URL!)
    platforms.push(await startPlatform({ ...start, database }))
    return clientOf(platforms.at(-1)!)
  }
  const close = async () => {
    for (const one of platforms.reverse()) await one.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { platform, client: clientOf(platform), config: start.config, folder, restart, close }
}

/** The tiny model never ends by itself. */
export const logit_bias = { "1": -100, "2": -100 }

export const createWith = (client: OpenAI, body: object) =>
  client.chat.completions.create({
    model: "svc-omni",
    max_tokens: 8,
    temperature: 0,
    logit_bias,
    ...body,
  } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming)

/** Waits for a batch. Returns the body of each line's reply, by its `custom_id`. */
export const batchReplies = async (client: OpenAI, id: string) => {
  const { output_file_id } = await completedBatch(client, id)
  const output = await (await client.files.content(output_file_id!)).text()
  const lines = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  return new Map<string, OpenAI.ChatCompletion>(
    lines.map(({ custom_id, response }) => [custom_id, response.body]),
  )
}
