import { execFile } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Block, blocksIn } from "../../docs/blocks.ts"
import { root } from "../../docs/site/pages.ts"
import { type Platform, startPlatform } from "../platform.ts"

/** The examples of the guide, as a reader would run them, on the whole server with fake models. */
const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), "rakit-guide-blocks-"))
let platform: Platform
let env: NodeJS.ProcessEnv
beforeAll(async () => {
  platform = await startPlatform()
  env = { ...process.env, RAKIT_URL: platform.url, RAKIT_KEY: platform.credentials.api_key }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  cpSync(join(root, "examples/chat-with-documents/handbook.pdf"), join(folder, "handbook.pdf"))
  const line = { custom_id: "a", method: "POST", url: "/v1/embeddings" }
  const body = { model: "svc-embed", input: "a" }
  writeFileSync(join(folder, "lines.jsonl"), `${JSON.stringify({ ...line, body })}\n`)
}, 120_000)
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true, force: true })
})

const blocksOf = (page: string, language: string): readonly Block[] =>
  blocksIn(page, readFileSync(join(root, page), "utf8")).filter(
    (block) => block.language === language && block.notRun === undefined,
  )
const runScript = async (code: string): Promise<string> => {
  writeFileSync(join(folder, "example.mjs"), code)
  return (await run("node", ["example.mjs"], { cwd: folder, env, timeout: 60_000 })).stdout
}
const named = (block: Block) => [`${block.page}:${block.line}`, block] as const
const pages = ["api-guide", "media", "images", "batches", "knowledge"].map(
  (name) => `docs/${name}.md`,
)

describe("examples of the guide", () => {
  // commands of rakit are checked by docs/blocks.test.ts
  const calls = pages
    .flatMap((page) => blocksOf(page, "sh"))
    .filter(({ code }) => code.startsWith("curl "))

  it.each(calls.map(named))("%s", async (_, { code }) => {
    const { stdout } = await run("bash", ["-c", code], { cwd: folder, env, timeout: 60_000 })
    expect(JSON.parse(stdout)).not.toHaveProperty("error")
  })

  it.each(pages.flatMap((page) => blocksOf(page, "js")).map(named))("%s", async (_, { code }) => {
    const printed = await runScript(code)
    const [, said] = /console\.log\(.*\) \/\/ (.*)$/m.exec(code) ?? []
    expect(printed.trim()).toMatch(said === undefined ? /\w/ : said)
  })

  it("README.md, all examples one after the other", async () => {
    const code = blocksOf("README.md", "js")
      .map((block) => block.code)
      .join("\n")
      .replaceAll("http://localhost:8080", platform.url)
      .replaceAll("svc_live_...", platform.credentials.api_key)
    const printed = await runScript(`${code}\nconsole.log(batch.id, results.length)`)
    expect(printed).toMatch(/batch-[\w-]+ [1-9]\d*\s*$/)
  }, 90_000)
})
