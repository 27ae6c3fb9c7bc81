import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { splitGguf, writeGguf } from "../../plugins/backend-onnx/testing/gguf-writer.ts"
import { tinyLlama } from "../../plugins/backend-onnx/testing/tiny-llama.ts"
import { commitNamed, publish } from "../../runtime/services/model-files/testing/fake-hub.ts"
import { sha256 } from "../../runtime/services/model-files/testing/fixture.ts"
import { type FileServer, startFileServer } from "../files-server.ts"
import { runCli, startPlatform } from "../platform.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-model-parts-"))
const commit = commitNamed("1")
const partNames = [1, 2, 3].map((part) => `q4/tiny-0000${part}-of-00003.gguf`)

let hub: FileServer
let cdn: FileServer

beforeAll(async () => {
  hub = await startFileServer()
  cdn = await startFileServer()
  const content = tinyLlama()
  const bodies = splitGguf(content, 3).map((part) => Buffer.from(writeGguf(part)))
  for (const [at, path] of partNames.entries())
    publish(hub, cdn, {
      ...{ repo: "owner/tiny", revisions: [], commit, isLarge: true },
      ...{ path, body: bodies[at]! },
    })
  const listing = partNames.map((path, at) => ({
    ...{ type: "file", path, oid: commitNamed("2") },
    lfs: { oid: sha256(bodies[at]!) },
  }))
  const other = { type: "file", path: "q4/other.gguf", oid: commitNamed("3") }
  hub.json("/api/models/owner/tiny/revision/main", { sha: commit })
  hub.json(`/api/models/owner/tiny/tree/${commit}/q4?recursive=true`, [...listing, other])
  writeFileSync(join(folder, "whole.gguf"), writeGguf(content))
})
afterAll(async () => {
  await hub.close()
  await cdn.close()
  rmSync(folder, { recursive: true, force: true })
})

it("a GGUF file in parts comes from a hub by its first part, and answers as in one piece", async () => {
  const model = (id: string, url: string) =>
    `{ id: ${id}, task: chat, backend: onnx, limits: { contextTokens: 400, maxOutputTokens: 64 }, sources: [{ url: "${url}" }] }`
  const config = join(folder, "rakit.yaml")
  writeFileSync(
    config,
    `dataDir: \${RAKIT_DATA}
server: { host: 127.0.0.1, port: "\${PORT:-0}" }
plugins:
  billing-free: {}
  identity-static: { keys: [{ name: app, hash: "\${RAKIT_KEY_HASH:-}" }] }
  backend-onnx: {}
  endpoint-chat: {}
models: [${model("parts", `hf:owner/tiny@main/${partNames[0]}`)}, ${model("whole", "./whole.gguf")}]
`,
  )
  const env = { RAKIT_DATA: join(folder, "data"), HF_ENDPOINT: hub.url }
  const pulled = await runCli(["models", "pull", "parts", "--json", "-c", config], env)
  const [{ path }] = JSON.parse(pulled.stdout).data
  expect(readdirSync(path).sort()).toEqual(partNames.map((name) => name.slice(3)))

  const made = await runCli(["keys", "hash", "--name", "app", "--json"])
  const { key, hash } = JSON.parse(made.stdout) as { readonly key: string; readonly hash: string }
  const dataDir = join(folder, "data")
  const platform = await startPlatform({ config, dataDir, env: { ...env, RAKIT_KEY_HASH: hash } })
  try {
    const client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: key, maxRetries: 0 })
    const ask = async (id: string) => {
      const answer = await client.chat.completions.create({
        ...{ model: id, max_tokens: 32, temperature: 0 },
        messages: [{ role: "user", content: "yes or no?" }],
      })
      return answer.choices[0]!.message.content
    }
    const answer = await ask("whole")
    expect(answer).not.toBe("")
    expect(await ask("parts")).toBe(answer)
  } finally {
    await platform.close()
  }
})
