import { afterAll, beforeAll, expect, it } from "vitest"
import type { Json } from "../../core/json.ts"
import { type Platform, startPlatform } from "../platform.ts"
import { type ApiDocument, type JsonSchema, readDocument } from "./fuzz/document.ts"

let platform: Platform
let document: ApiDocument
beforeAll(async () => {
  platform = await startPlatform()
  document = readDocument(
    (await (await fetch(`${platform.url}/openapi.json`)).json()) as JsonSchema,
  )
}, 60_000)
afterAll(() => platform.close())

const examplesOf = ({ body }: ApiDocument["operations"][number]): readonly Json[] =>
  (document.resolve(body["application/json"]?.schema ?? {}).examples as readonly Json[]) ?? []

// needs structured output, which models without weights don't have; its plugin's test sends it
const elsewhere = new Set(["schemasCheck"])

it("every example of /openapi.json is answered", async () => {
  const sent: string[] = []
  for (const operation of document.operations.filter(({ id }) => !elsewhere.has(id)))
    for (const example of examplesOf(operation)) {
      const reply = await fetch(platform.url + operation.path, {
        method: operation.method,
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${platform.credentials.api_key}`,
        },
        body: JSON.stringify(example),
      })
      const text = await reply.text()
      expect([operation.id, example, reply.ok, text]).toEqual([operation.id, example, true, text])
      sent.push(operation.id)
    }
  expect(sent).toEqual(
    expect.arrayContaining([
      ...["chatCompletions", "embeddings", "rerank", "rerankV2"],
      ...["imagesGenerations", "imagesEdits"],
      ...["uploadsCreate", "webhooksCreate"],
    ]),
  )
  expect(sent.filter((id) => id === "chatCompletions")).toHaveLength(4)
})
