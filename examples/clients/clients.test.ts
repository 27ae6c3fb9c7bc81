import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../runtime/testing/start-platform.ts"

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const run = async (script: string, ...args: string[]) => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, script), ...args], { env: { ...platform.env, RAKIT_BASE_URL: `${platform.url}/v1` } })
  return stdout
}

it("chat.js streams an answer and says what it cost", async () => {
  expect(await run("chat.js", "one two three")).toBe("one two three\n(4 + 3 tokens, Rp0.024)\n")
})

it("embeddings.js compares sentences", async () => {
  expect(await run("embeddings.js")).toMatch(/^-?\d\.\d{3} I forgot my login secret\n-?\d\.\d{3} The weather .*\n\(\d+ tokens, 1024 numbers each\)\n$/)
})

it("rerank.js lists the best document first", async () => {
  const lines = (await run("rerank.js")).trim().split("\n")
  expect(lines).toHaveLength(3)
  expect(lines[0]).toContain("Jakarta")
})
