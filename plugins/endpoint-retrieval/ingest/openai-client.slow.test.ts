import OpenAI from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../../testing/platform.ts"

/** The whole server, with a model without weights. */

let platform: Platform
let client: OpenAI
beforeAll(async () => {
  platform = await startPlatform()
  client = new OpenAI({
    baseURL: `${platform.url}/v1`,
    apiKey: platform.credentials.api_key,
    maxRetries: 0,
  })
})
afterAll(() => platform.close())

const upload = (text: string, name = "a.txt") =>
  client.files.create({ file: new File([text], name), purpose: "knowledge" as never })
const search = (body: object) =>
  client.post("/retrieval", { body }) as Promise<{
    readonly results: readonly { readonly file_id: string; readonly text: string }[]
  }>

it("a text is found by the official client when it is processed, and not when it is deleted", async () => {
  const before = await upload("the harbour of Makassar lies in the west")
  await upload("bread is baked in the morning", "b.md")
  expect(before.status).toBe("uploaded")
  const file = await client.files.waitForProcessing(before.id, { pollInterval: 50 })
  expect(file).toMatchObject({ status: "processed", progress: { chunks: 1, tokens: 8 } })
  const query = { query: "harbour of Makassar", file_ids: [before.id] }
  expect((await search(query)).results).toMatchObject([
    { file_id: before.id, text: "the harbour of Makassar lies in the west" },
  ])
  await client.files.delete(before.id)
  await expect(search(query)).rejects.toMatchObject({ status: 404 })
  expect((await search({ query: "harbour" })).results.map(({ file_id }) => file_id)).not.toContain(
    before.id,
  )
}, 60_000)
