import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { type Platform, startPlatform } from "rakit/testing/platform"
import { afterAll, beforeAll, expect, it } from "vitest"

const here = import.meta.dirname

/** The example's own deployment, with a model that has no weights. */
const config = (): string => {
  const file = join(mkdtempSync(join(tmpdir(), "rakit-example-")), "rakit.yaml")
  const text = readFileSync(join(here, "rakit.yaml"), "utf8")
    .replace("backend-onnx: {}", "rakit/testing/backend: {}")
    .replace("./plugin.ts:", `${join(here, "plugin.ts")}:`)
    .replace("backend: onnx", "backend: fake")
    .replace(/ {4}sources:[\s\S]*/, "")
  writeFileSync(file, text)
  return file
}

let platform: Platform
let client: OpenAI
beforeAll(async () => {
  platform = await startPlatform({ config: config() })
  client = new OpenAI({
    baseURL: `${platform.url}/v1`,
    apiKey: platform.credentials.api_key,
    maxRetries: 0,
  })
})
afterAll(() => platform.close())

it("answers, and is charged like every endpoint", async () => {
  const { data, response } = await client
    .post("/summaries", { body: { text: "a long story" } })
    .withResponse()
  expect(data).toEqual({ object: "summary", model: "svc-lyt", summary: "a long story" })
  expect(Number(response.headers.get("x-cost-idr"))).toBeGreaterThan(0)
})

it("refuses a wrong body with the field as param", async () => {
  await expect(client.post("/summaries", { body: { text: "" } })).rejects.toMatchObject({
    status: 400,
    code: "invalid_request_error",
    param: "text",
  })
})

it("needs a key, and stands in the API's description", async () => {
  expect((await fetch(`${platform.url}/v1/summaries`, { method: "POST", body: "{}" })).status).toBe(
    401,
  )
  const { paths } = (await (await fetch(`${platform.url}/openapi.json`)).json()) as {
    paths: Record<string, unknown>
  }
  expect(Object.keys(paths)).toContain("/v1/summaries")
})
