import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { parse } from "yaml"
import { type FileServer, startFileServer } from "../../testing/files-server.ts"
import { runCli, startPlatform } from "../../testing/platform.ts"
import { commitNamed, gitBlob, publish } from "../services/model-files/testing/fake-hub.ts"
import { sha256 } from "../services/model-files/testing/fixture.ts"

/** The lock file as an operator meets it: a hub with a branch, `rakit` and its server. */
const folder = mkdtempSync(join(tmpdir(), "rakit-models-"))
const weights = join(import.meta.dirname, "../../examples/add-a-model/weights")
const token = "hf_secret-of-the-operator"
const one = commitNamed("1")
const two = commitNamed("2")
const source = "hf:owner/tiny@main/tiny/"
const lockFile = join(folder, "models.lock.yaml")
const lock = () => parse(readFileSync(lockFile, "utf8")) as Lock
interface Lock {
  readonly models: Record<string, readonly { commit: string; sha256: string; url: string }[]>
}

let hub: FileServer
let cdn: FileServer
let config = ""

/** Makes a commit of the tiny model the head of `main`. */
const commit = (name: string, description: string) => {
  const files = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
  const listing = files.map((file) => {
    const text = readFileSync(join(weights, file))
    const body = file === "config.json" ? Buffer.from(`${text}${description}`) : text
    const path = `tiny/${file}`
    const isLarge = file.endsWith(".safetensors")
    publish(hub, cdn, { repo: "owner/tiny", revisions: [], commit: name, path, body, isLarge })
    const lfs = isLarge ? { lfs: { oid: sha256(body) } } : {}
    return { type: "file", path, oid: gitBlob(body), ...lfs }
  })
  hub.json("/api/models/owner/tiny/revision/main", { sha: name })
  hub.json(`/api/models/owner/tiny/tree/${name}/tiny?recursive=true`, listing)
}

const env = () => ({
  ...{ RAKIT_DATA: join(folder, "data"), HOST: "127.0.0.1" },
  ...{ HF_ENDPOINT: hub.url, HF_TOKEN: token },
})
const models = (...args: readonly string[]) =>
  runCli(["models", ...args, "-c", config], env()).then(({ code, stdout, stderr }) => {
    expect(stdout + stderr).not.toContain(token)
    return { code, text: stdout + stderr }
  })
const dropCache = () => rmSync(join(folder, "data"), { recursive: true, force: true })

beforeAll(async () => {
  hub = await startFileServer()
  cdn = await startFileServer()
  commit(one, "\n")
  mkdirSync(join(folder, "models"))
  config = join(folder, "rakit.yaml")
  writeFileSync(
    join(folder, "models/tiny.yaml"),
    `models: [{ id: tiny, task: chat, backend: onnx, limits: { contextTokens: 512, maxOutputTokens: 64 }, capabilities: [chat], sources: [{ url: "${source}" }] }]\n`,
  )
  writeFileSync(
    config,
    `dataDir: \${RAKIT_DATA}
server: { host: "\${HOST}", port: "\${PORT:-0}" }
plugins:
  billing-free: {}
  identity-static: { keys: [{ name: app, hash: "\${RAKIT_KEY_HASH:-}" }] }
  backend-onnx: {}
  endpoint-models: {}
  endpoint-chat: {}
include: [{ file: models/tiny.yaml, id: svc-lyt }]
`,
  )
})
afterAll(async () => {
  await hub.close()
  await cdn.close()
  rmSync(folder, { recursive: true, force: true })
})

it("the first start of a server pulls the included model and writes the lock file", async () => {
  const made = await runCli(["keys", "hash", "--name", "app", "--json"])
  const { key, hash } = JSON.parse(made.stdout) as { readonly key: string; readonly hash: string }
  const platform = await startPlatform({
    ...{ config, database: "embedded", dataDir: join(folder, "data") },
    env: { ...env(), RAKIT_KEY_HASH: hash },
  })
  try {
    const client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: key, maxRetries: 0 })
    const answer = await client.chat.completions.create({
      ...{ model: "svc-lyt", max_tokens: 4 },
      messages: [{ role: "user", content: "Hello" }],
    })
    expect(answer.usage?.completion_tokens).toBeGreaterThan(0)
    expect(JSON.stringify(platform.output())).not.toContain(token)
  } finally {
    await platform.close()
  }
  expect(lock().models["svc-lyt"]).toEqual([
    { url: source, commit: one, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
  ])
  const checked = await runCli(["check", config], env())
  expect(checked.stdout).toContain(
    `models/tiny.yaml  ${source} (locked: ${lock().models["svc-lyt"]?.[0]?.sha256.slice(0, 12)})`,
  )
})

it("later pulls stay with the lock file, until --update", async () => {
  commit(two, "\n\n")
  dropCache()
  expect((await models("pull")).code).toBe(0)
  expect(lock().models["svc-lyt"]?.[0]?.commit).toBe(one)
  expect((await models("verify")).text).toContain("svc-lyt: ok")
  expect((await models("pull", "--update")).code).toBe(0)
  expect(lock().models["svc-lyt"]?.[0]?.commit).toBe(two)
  expect(cdn.seen.every(({ headers }) => headers.authorization === undefined)).toBe(true)
}, 60_000)

it("refuses what has changed by name, and writes digests to another file with --lock", async () => {
  const other = join(folder, "other.yaml")
  expect((await models("pull", "--lock", other)).text).toContain(`digests: ${other}`)
  expect(parse(readFileSync(other, "utf8"))).toEqual(lock())
  expect((await models("pull", "--lock", "svc-none")).text).toContain("no model 'svc-none'")
  dropCache()
  const text = readFileSync(lockFile, "utf8")
  const locked = lock().models["svc-lyt"]?.[0]?.sha256 ?? ""
  writeFileSync(lockFile, text.replace(locked, "f".repeat(64)))
  const refused = await models("pull")
  expect(refused.code).toBe(1)
  expect(refused.text).toMatch(
    /hf:owner\/tiny@main\/tiny\/: the folder has the digest \w+, not the pinned f+; .*models\.lock\.yaml pins it/,
  )
  writeFileSync(lockFile, "models: wrong\n")
  expect((await models("list")).text).toMatch(/models\.lock\.yaml: this is no lock file/)
}, 60_000)

it("pulls the others where models can't be pulled, and names each of these", async () => {
  dropCache()
  const other = join(folder, "others.yaml")
  // more than are pulled at the same time, before the one that is there
  const gone = ["a", "b", "c", "d"].map((id) => ({ id, url: `hf:owner/gone-${id}@main/x.gguf` }))
  const here = { id: "here", url: `hf:owner/tiny@${two}/tiny/config.json` }
  const entries = [...gone, here].map(({ id, url }) => ({
    ...{ id, task: "chat", backend: "onnx", capabilities: ["chat"], sources: [{ url }] },
    limits: { contextTokens: 512, maxOutputTokens: 64 },
  }))
  const whole = parse(readFileSync(config, "utf8")) as object
  writeFileSync(other, JSON.stringify({ ...whole, include: [], models: entries }))
  rmSync(lockFile, { force: true })
  const { code, stdout, stderr } = await runCli(["models", "pull", "-c", other], env())
  expect(code).toBe(1)
  expect(stdout).toMatch(/^here: .+config\.json\n$/)
  expect(Object.keys(lock().models)).toEqual(["here"])
  for (const { id, url } of gone)
    expect(stderr).toContain(
      `The files of model ${id} are missing: no source could be used:\n  ${url}: `,
    )
}, 60_000)
