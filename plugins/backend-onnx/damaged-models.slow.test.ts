import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test, vi } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { writeGguf } from "./testing/gguf-writer.ts"
import { tinyLlama, tinyLlamaFile } from "./testing/tiny-llama.ts"

/** The whole server with one good model among damaged ones. */
let platform: Platform | undefined
const folder = mkdtempSync(join(tmpdir(), "rakit-damaged-models-"))

const content = tinyLlama()
const nan = new Uint8Array(new Float32Array(64 * 64).fill(Number.NaN).buffer)
const files: Readonly<Record<string, Uint8Array>> = {
  good: tinyLlamaFile(),
  cut: tinyLlamaFile().subarray(0, 60_000),
  poisoned: writeGguf({
    ...content,
    tensors: content.tensors.map((item) =>
      item.name === "blk.0.attn_q.weight" ? { ...item, bytes: nan } : item,
    ),
  }),
  strange: writeGguf({
    ...content,
    metadata: { ...content.metadata, "general.architecture": "mamba" },
  }),
}

const model = (id: string, sha256?: string) => `
  - id: ${id}
    task: chat
    limits: { contextTokens: 256, maxOutputTokens: 64 }
    capabilities: [chat]
    price: { input: 1, output: 1 }
    backend: onnx
    sources: [{ url: "file:${join(folder, `${id}.gguf`)}"${sha256 ? `, sha256: "${sha256}"` : ""} }]`

const config = `
name: damaged
dataDir: \${RAKIT_DATA}
server: { host: 127.0.0.1, port: "\${PORT:-0}" }
plugins:
  database-postgres: { url: "\${DATABASE_URL:-}" }
  signing-keys: {}
  mail-smtp: {}
  billing-ledger: {}
  accounts: {}
  idempotency-postgres: {}
  storage-disk: {}
  backend-onnx: { threads: 1 }
  endpoint-models: {}
  endpoint-chat: {}
  dashboard: {}
models:${model("good")}${model("cut")}${model("poisoned")}${model("strange")}${model("other", "0".repeat(64))}
`

interface Readiness {
  readonly status: string
  readonly models: readonly {
    readonly id: string
    readonly state: string
    readonly reason?: string
  }[]
}

const readiness = async (): Promise<Readiness> =>
  (await fetch(`${platform!.url}/readyz`)).json() as Promise<Readiness>

const settled = (): Promise<Readiness> =>
  vi.waitFor(
    async () => {
      const now = await readiness()
      for (const { state } of now.models) expect(state).toMatch(/^(ready|failed)$/)
      return now
    },
    { timeout: 60_000, interval: 100 },
  )

beforeAll(async () => {
  for (const [id, bytes] of Object.entries({ ...files, other: files.good! }))
    writeFileSync(join(folder, `${id}.gguf`), bytes)
  writeFileSync(join(folder, "rakit.yaml"), config)
  platform = await startPlatform({ config: join(folder, "rakit.yaml"), ready: false })
}, 60_000)
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true, force: true })
})

const ask = (id: string) =>
  fetch(`${platform!.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${platform!.credentials.api_key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({
      model: id,
      messages: [{ role: "user", content: "yes" }],
      max_tokens: 4,
    }),
  })

test("damaged models say why in /readyz and in the log, and the good one serves", async () => {
  const { status, models } = await settled()
  expect(status).toBe("failing")
  const reasons = {
    cut: /cut\.gguf: it is cut: the tensor '.*' ends at byte \d+, the file at 60000\. Pull it again/,
    poisoned:
      /poisoned\.gguf: the tensor .*blk\.0\.attn_q\.weight.*holds a value that is not a finite number/,
    strange:
      /strange\.gguf: its architecture is 'mamba'; this backend runs llama, .*qwen3.*\. Name a model/,
    other: /other\.gguf has sha256 [0-9a-f]{64}, not the pinned 0{64}/,
  }
  const log = platform!.output().stdout + platform!.output().stderr
  for (const [id, reason] of Object.entries(reasons)) {
    const found = models.find((one) => one.id === id)!
    expect([found.state, found.reason]).toEqual(["failed", expect.stringMatching(reason)])
    expect(log).toMatch(reason)
  }
  expect(models.find(({ id }) => id === "good")).toMatchObject({ state: "ready" })

  const answer = await ask("good")
  expect([answer.status, ((await answer.json()) as { readonly object: string }).object]).toEqual([
    200,
    "chat.completion",
  ])
  const refused = await (await ask("cut")).text()
  expect(JSON.parse(refused)).toMatchObject({ error: { code: "backend_error" } })
  // clients must not see paths
  expect(refused).not.toContain(folder)
}, 60_000)
