import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterEach, expect, it } from "vitest"
import { writeGguf } from "../plugins/backend-onnx/testing/gguf-writer.ts"
import { tinyLlama } from "../plugins/backend-onnx/testing/tiny-llama.ts"
import { installedChromium } from "../plugins/dashboard/testing/chromium.ts"
import { openTestDatabase, type TestDatabase } from "../testing/postgres.ts"
import { missing } from "../testing/proxies.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
let database: TestDatabase | undefined
afterEach(() => database?.close())

/** Checks that a bench runs and prints its lines; figures of a short run mean nothing. */
const run = async (bench: string, ...args: readonly string[]): Promise<string> => {
  database = await openTestDatabase()
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", `bench/${bench}.ts`, ...args],
    {
      cwd: root,
      env: { ...process.env, DATABASE_URL: database.url, RAKIT_TEST_BATCH_POLL_MS: "200" },
    },
  )
  return stdout
}

it("path.ts prints each layer with its ratio", async () => {
  const text = await run("path", "--rounds", "1", "--ms", "5")
  expect(text).toMatch(/machine .*cores.*Node v/)
  for (const title of [
    "chat, 20 messages, 50 output tokens",
    "the same as a stream",
    "one embedding (base64)",
  ])
    expect(text).toContain(title)
  for (const layer of [
    "the Model port alone",
    "call path",
    "ledger on PostgreSQL",
    "HTTP",
    "bare node:http",
  ])
    expect(text).toMatch(new RegExp(`${layer}.* \\d[\\d.,]* x`))
}, 60_000)

it("paid.ts prints what being paid for adds, and the most that is held", async () => {
  const text = await run("paid", "--rounds", "1", "--ms", "150")
  for (const side of ["replyAfter: journal", "replyAfter: database", "without", "bare node:http"])
    expect(text.match(new RegExp(`^ {2}(rakit|limit).*${side}.* \\d`, "gm"))).toHaveLength(4)
  expect(text).toMatch(
    /added by authentication, limits, hold and settlement with replyAfter: journal: median -?[\d.]+ ms .*p95 -?[\d.]+ ms/,
  )
}, 300_000)

it("http.ts prints requests a second and p95 of each server, and no reply fails", async () => {
  const text = await run("http", "--rounds", "1", "--ms", "200")
  for (const title of ["GET /v1/models", "POST /v1/embeddings"]) expect(text).toContain(title)
  expect(text.match(/^ {2}(rakit|limit).* x +0$/gm)).toHaveLength(6)
}, 60_000)

it("batches.ts prints the ratio to the engine, and memory over a batch", async () => {
  const text = await run("batches", "--rounds", "1", "--lines", "20", "--whole", "100")
  expect(text).toMatch(/a batch, from its first line to its end +\d[\d.,]* +\d[\d.,]* x/)
  expect(text).toMatch(/most MB( +[\d.,-]+){10}/)
}, 120_000)

it("chat.ts prints growth and memory, with a tiny model", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-bench-test-"))
  const content = tinyLlama()
  writeFileSync(
    join(folder, "tiny.gguf"),
    writeGguf({ ...content, metadata: { ...content.metadata, "llama.context_length": 4096 } }),
  )
  const short = ["--rounds", "1", "--tokens", "4", "--contexts", "2", "--requests", "20"]
  const text = await run(
    "chat",
    "--model",
    join(folder, "tiny.gguf"),
    ...short,
    "--only",
    "growth,schema,determinism,sizes,precisions,memory",
    "--sizes",
    "3M",
  )
  expect(text).toMatch(/8 streams( +[\d.,]+){2}/)
  expect(text).toMatch(/copying code.* x/)
  expect(text).toMatch(/any JSON, while all write.* x/)
  expect(text.match(/all 12 equal/g)).toHaveLength(2)
  expect(text).toMatch(/a lonely row twice: the same bits( +[\d.,]+ \([\d.]+ x\)){4}/)
  expect(text).toMatch(/3M \(\d+ MB\), Rakit( +[\d.,]+.*){6}/)
  expect(text).toMatch(/tiny, auto( +[\d.,]+ \(1.00 x\)){3} +[\d.]+/)
  expect(text.match(/^ {2}\d+ +\d+$/gm)?.length).toBe(10)
  rmSync(folder, { recursive: true, force: true })
}, 120_000)

it("embed.ts prints similarity, speed and reranking, with tiny models", async () => {
  const folder = join(root, "plugins/backend-onnx/fixtures/encoders")
  const models = ["--model", join(folder, "bert"), "--rerank", join(folder, "bert-classifier")]
  const text = await run("embed", ...models, "--rounds", "1", "--ms", "20")
  expect(text).toMatch(/Rakit( +-?\d[\d.e-]*){3}/)
  expect(text.match(/bare onnxruntime-node( +[\d.,]+){2} +[\d.,]+ x/g)).toHaveLength(3)
  expect(text).toMatch(/8 in flight( +[\d.,]+){2}/)
}, 120_000)

it("images.ts prints steps/s to a bare session, with a LoRA and without, and memory", async () => {
  const folder = join(root, "plugins/backend-onnx/fixtures/diffusion")
  const lora = join(folder, "lora/sd/peft.safetensors")
  const short = ["--size", "64", "--steps", "3", "--rounds", "1", "--large", "128"]
  const text = await run("images", join(folder, "sd"), "--lora", lora, ...short)
  for (const side of ["bare session", "Rakit", "two users at once", "no LoRA", "with the LoRA"])
    expect(text).toMatch(new RegExp(`^ {2}${side}.* \\d[\\d.]* x$`, "m"))
  expect(text).toMatch(/128 x 128: [\d.]+ s, at most \d+ MB in memory/)
}, 120_000)

it("soak.ts answers the honest well beside the hostile, and the ledger stays sound", async () => {
  const text = await run("soak", "--minutes", "0.1", "--warm", "2", "--idle", "3", "--rest", "1")
  for (const kind of ["health", "first token", "chat", "embeddings", "file"])
    expect(text).toMatch(new RegExp(`^ {2}${kind} +\\d`, "m"))
  // where other programs take the cores, a full queue may say so; nothing else may go wrong
  expect(text).toMatch(
    /all honest calls were answered well|that failed: \d+ x \w+: 429 backend_busy(, \d+ x \w+: 429 backend_busy)*$/m,
  )
  expect(text).toContain("The ledger is sound.")
}, 180_000)

it("ingest.ts says how each file ends, with a sound and a broken one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-bench-test-"))
  const page = "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
  const text = "BT /F 12 Tf 72 700 Td (A line of text) Tj ET"
  const objects = [
    "<</Type/Catalog/Pages 2 0 R>>",
    "<</Type/Pages/Kids[3 0 R]/Count 1/MediaBox[0 0 612 792]>>",
    page,
    `<</Length ${text.length}>>stream\n${text}\nendstream`,
    "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
  ]
  const body = objects.map((object, i) => `${i + 1} 0 obj${object}endobj\n`).join("")
  writeFileSync(join(folder, "sound.pdf"), `%PDF-1.4\n${body}trailer<</Root 1 0 R>>\n%%EOF`)
  writeFileSync(join(folder, "broken.pdf"), "%PDF-1.4\nnothing")
  const printed = await run("ingest", folder)
  expect(printed).toMatch(/all +2 +1 +1\.00 .*1 broken/)
  expect(printed).toMatch(/memory +\d+ MB at most/)
  rmSync(folder, { recursive: true, force: true })
}, 60_000)

it.skipIf(!existsSync("/usr/lib/postgresql"))(
  "scale.ts measures each kind of work on two servers, and no call fails",
  async () => {
    const times = ["--ms", "200", "--idle", "200", "--settle", "20"]
    const short = ["--rounds", "1", "--connections", "8", ...times]
    const few = ["--servers", "2", "--lines", "20", "--batches", "1", "--chunks", "20,60"]
    const text = await run("scale", ...short, ...few)
    for (const row of ["8", "8, accounts apart", "8, one account"])
      expect(text).toMatch(new RegExp(`^ {2}${row}( +[\\d.,]+){6} +0$`, "m"))
    for (const kind of ["chat", "chatStream", "embedding", "file", "batchLine", "webhook", "chunk"])
      expect(text).toMatch(new RegExp(`^ {2}${kind}( +[\\d.,]+){6}$`, "m"))
    expect(text.match(/^ {2}search, \d+ chunks( +[\d.,]+){6}$/gm)).toHaveLength(2)
  },
  480_000,
)

it.skipIf(!existsSync("/usr/lib/postgresql") || missing("nginx"))(
  "many.ts kills a server, and no call, batch or sum is wrong",
  async () => {
    const short = ["--servers", "2", "--connections", "4", "--minutes", "0.1", "--every", "3"]
    const text = await run("many", ...short)
    expect(text).toMatch(/2 servers, 4 connections, 0\.1 minutes, [1-9]\d* kills/)
    expect(text).toMatch(/^calls [1-9]/m)
    expect(text.match(/^ok /gm)).toHaveLength(4)
    expect(text).toMatch(/For bench\/README\.md: .* \d+ paid without an answer/)
    expect(text).not.toContain("WRONG")
  },
  240_000,
)

it.skipIf(!installedChromium)(
  "first-hour.ts walks from sign-up to an answer, and loads every page on two devices",
  async () => {
    const text = await run("first-hour", "--rounds", "1", "--quiet", "100", "--only", "walks,pages")
    expect(text).toMatch(/Sign-up to the first answer.*\n.*\n +\d/)
    for (const page of ["dashboard, signed out", "overview, signed in", "/docs", "/docs/guide"])
      for (const cache of ["cold", "warm"])
        expect(text.match(new RegExp(`^ {2}${page}, ${cache} +[\\d,.]+`, "gm"))).toHaveLength(2)
  },
  300_000,
)
