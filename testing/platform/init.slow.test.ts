import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, describe, expect, it } from "vitest"
import { tinyLlamaFile } from "../../plugins/backend-onnx/testing/tiny-llama.ts"
import { runCli, startPlatform } from "../platform.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-init-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let count = 0
const fresh = () => join(folder, `${++count}.yaml`)
const env = { RAKIT_DATA: join(folder, "data") }

const init = (...args: readonly string[]) => runCli(["init", ...args], env)

describe("rakit init", () => {
  it.each([
    [[]],
    [["--serve", "chat,embeddings,rerank,images,audio,files,batches,retrieval"]],
    [["--serve", "chat", "--database", "none"]],
    [["--serve", "chat", "--model", "qwen3-0.6b", "--model", "llama-3.2-1b"]],
    [["--serve", "embeddings", "--model", "multilingual-e5-small"]],
    [["--serve", "retrieval", "--database", "postgres", "--storage", "s3"]],
  ])("%j: a commented file that `rakit check` takes", async (args) => {
    const file = fresh()
    const { code, stdout, stderr } = await init(file, ...args)
    expect([code, stderr]).toEqual([0, ""])
    expect(stdout).toContain(`npx rakit serve ${file}`)
    expect(readFileSync(file, "utf8").match(/#/g)!.length).toBeGreaterThan(8)
    const checked = await runCli(["check", "-c", file], {
      ...env,
      DATABASE_URL: "postgres://127.0.0.1:9/none",
      S3_ENDPOINT: "http://127.0.0.1:9",
      S3_BUCKET: "blobs",
      S3_ACCESS_KEY_ID: "id",
      S3_SECRET_ACCESS_KEY: "secret",
    })
    expect(checked.code).toBe(0)
    expect(checked.stdout).toMatch(/^This config is fine: my-deployment, /)
  })

  it.each([
    [["--serve", "chats"], "there is no 'chats'. Fix: choose of chat, "],
    [["--serve", "batches", "--database", "none"], "batches can't do without one. Fix: "],
    [["--model", "qwen9"], "there is no model 'qwen9'. Fix: a path to a GGUF file"],
    [["--model", "./none.gguf"], "there is no file ./none.gguf"],
    [["--database", "mysql"], "there is no 'mysql'. Fix: choose of embedded, postgres, none."],
  ])("%j is refused, and nothing is written", async (args, message) => {
    const file = fresh()
    const { code, stderr } = await init(file, ...args)
    expect([code, existsSync(file)]).toEqual([1, false])
    expect(stderr).toContain(message)
  })

  it("replaces a file only where that is wanted", async () => {
    const file = fresh()
    writeFileSync(file, "mine")
    expect(await init(file)).toMatchObject({ code: 1, stderr: expect.stringContaining("--force") })
    expect(readFileSync(file, "utf8")).toBe("mine")
    expect((await init(file, "--force")).code).toBe(0)
    expect(readFileSync(file, "utf8")).toContain("plugins:")
  })

  it("leads from a GGUF file to a server that chats with it, which can be measured", async () => {
    const own = fresh()
    writeFileSync(join(folder, "My Tiny.Q8_0.gguf"), tinyLlamaFile())
    const { stdout } = await init(
      own,
      "--serve",
      "chat",
      "--model",
      join(folder, "My Tiny.Q8_0.gguf"),
      "--json",
    )
    expect(JSON.parse(stdout)).toMatchObject({ object: "config", models: ["my-tiny"] })
    expect(readFileSync(own, "utf8")).toContain('- url: "./My Tiny.Q8_0.gguf"')
    const platform = await startPlatform({ config: own })
    try {
      const apiKey = platform.credentials.api_key
      const client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey })
      const answer = await client.chat.completions.create({
        model: "my-tiny",
        max_tokens: 3,
        messages: [{ role: "user", content: "hello" }],
      })
      expect(answer.usage?.completion_tokens).toBeGreaterThan(0)
      const bench = await runCli(
        [
          "bench",
          platform.url,
          "--requests",
          "6",
          "--parallel",
          "2",
          "--max-tokens",
          "4",
          "--json",
        ],
        { RAKIT_API_KEY: apiKey },
      )
      expect(JSON.parse(bench.stdout)).toMatchObject({
        object: "bench",
        model: "my-tiny",
        requests: 6,
        failed: 0,
        failures: {},
      })
      const refused = await runCli(["bench", platform.url, "-n", "2"], {
        RAKIT_API_KEY: "svc_live_no",
      })
      expect(refused.code).toBe(1)
      expect(refused.stderr).toContain("can't be asked: 401 ")
      const byConfig = await runCli(["bench", "-c", own, "-n", "2", "-t", "2", "--json"], {
        RAKIT_DATA: platform.env.RAKIT_DATA!,
      })
      expect(JSON.parse(byConfig.stdout)).toMatchObject({ requests: 2, failed: 0 })
    } finally {
      await platform.close()
    }
  })
})
