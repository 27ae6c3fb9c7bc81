import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Platform, startPlatform } from "../platform.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-embeddings-"))
const maxInputs = 300
let platform: Platform
let client: OpenAI
beforeAll(async () => {
  const config = join(folder, "more-inputs.yaml")
  const text = readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8")
    .replace("../testing/fakes", join(import.meta.dirname, "../fakes"))
    .replace("endpoint-embeddings: {}", `endpoint-embeddings: { maxInputs: ${maxInputs} }`)
  writeFileSync(config, text)
  platform = await startPlatform({ config })
  const apiKey = platform.credentials.api_key
  client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
})
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true, force: true })
})

const embed = (input: OpenAI.EmbeddingCreateParams["input"], more: object = {}) =>
  client.embeddings.create({ model: "svc-embed", input, ...more })

it("the official client sends tokens, alone and several, and reads the base64 that it asks for", async () => {
  const one = await embed([5, 6, 7])
  expect(one.data[0]!.embedding).toHaveLength(2048)
  expect(one.usage.prompt_tokens).toBe(3)
  const several = await embed([[5, 6, 7], [8]], { encoding_format: "float" })
  expect(several.data.map(({ index }) => index)).toEqual([0, 1])
  for (const [i, x] of several.data[0]!.embedding.entries())
    expect(x).toBeCloseTo(one.data[0]!.embedding[i]!, 6)
})

it("takes as many inputs as config allows, with thousands of tokens each", async () => {
  const tokens = Array.from({ length: 1_500 }, (_, id) => id)
  const { data } = await embed(Array<number[]>(maxInputs).fill(tokens), { dimensions: 2 })
  expect(data).toHaveLength(maxInputs)
  await expect(embed(Array<string>(maxInputs + 1).fill("a"))).rejects.toMatchObject({
    status: 400,
    param: "input",
    message: expect.stringContaining("maxInputs of endpoint-embeddings"),
  })
})

it("says where a token is that the model does not have", async () => {
  await expect(embed([5, 50_000])).rejects.toMatchObject({ status: 400, param: "input[1]" })
  await expect(embed([[5], [6, 50_000]])).rejects.toMatchObject({ param: "input[1][1]" })
})
