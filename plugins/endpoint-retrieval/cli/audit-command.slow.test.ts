import OpenAI from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Platform, runCli, startPlatform } from "../../../testing/platform.ts"

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const audit = (...options: readonly string[]) =>
  runCli(["retrieval", "audit", "-c", "config/test.yaml", ...options], platform.env)

it("audits beside a server what was uploaded to it", async () => {
  const client = new OpenAI({
    baseURL: `${platform.url}/v1`,
    apiKey: platform.credentials.api_key,
    maxRetries: 0,
  })
  const text = Array.from({ length: 60 }, (_, i) => `Rule ${i}: ${"word ".repeat(30)}${i}.`)
  const { id } = await client.files.create({
    file: new File([text.join("\n\n")], "rules.txt"),
    purpose: "knowledge" as never,
  })
  await client.files.waitForProcessing(id, { pollInterval: 50 })
  const { code, stdout, stderr } = await audit("--json")
  expect(stderr).toBe("")
  expect(JSON.parse(stdout)).toMatchObject({
    sound: true,
    accounts: [{ mode: "live", documents: 1, recall: 1, chunks_without_vectors: 0 }],
  })
  expect(code).toBe(0)
  const { account } = JSON.parse(stdout).accounts[0]
  expect((await audit("--account", account)).stdout).toContain("The index is complete.")
  expect((await audit("--account", "acct_other")).stdout).toContain("nothing is searched")
  // three commands, each a process
}, 60_000)
