import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import OpenAI from "openai"
import { afterAll, expect, it } from "vitest"
import { errorOf } from "../dashboard-client.ts"
import { runCli, startPlatform } from "../platform.ts"

const fakes = fileURLToPath(new URL("../fakes/backend.ts", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "rakit-minimal-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** config/minimal.yaml as it is, over models without weights. */
const withoutWeights = (): string => {
  const file = join(folder, "minimal.yaml")
  const text = readFileSync("config/minimal.yaml", "utf8")
  const config = text
    .replace("backend-onnx: {}", `${fakes}: {}`)
    .replaceAll("backend: onnx", "backend: fake")
    .replace(/ {4}sources:\n(?: {6,}.*\n)+/g, "")
  writeFileSync(file, config)
  return file
}

/** The processes that this one has started. */
const childrenOf = (pid: number | undefined): readonly string[] =>
  execFileSync("ps", ["-eo", "ppid=,comm="])
    .toString()
    .split("\n")
    .filter((line) => line.trim().startsWith(`${pid} `))

const makeKey = async () =>
  JSON.parse((await runCli(["keys", "hash", "--name", "app", "--json"])).stdout) as {
    readonly key: string
    readonly hash: string
  }

it("chat and embeddings run with static keys, without a database", async () => {
  const { key, hash } = await makeKey()
  const dataDir = join(folder, "data")
  const platform = await startPlatform({
    ...{ config: withoutWeights(), database: "embedded", dataDir },
    env: { HOST: "127.0.0.1", RAKIT_KEY_HASH: hash },
  })
  try {
    const client = (apiKey: string) =>
      new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
    const mine = client(key)
    const ask = { model: "svc-lyt", messages: [{ role: "user" as const, content: "Hello" }] }
    const answer = await mine.chat.completions.create(ask, { idempotencyKey: "once" })
    expect(answer.choices[0]?.message.content).not.toBe("")
    let streamed = ""
    for await (const chunk of await mine.chat.completions.create({ ...ask, stream: true }))
      streamed += chunk.choices[0]?.delta.content ?? ""
    expect(streamed).not.toBe("")
    const { data } = await mine.embeddings.create({ model: "svc-embed", input: ["a", "b"] })
    expect(data).toHaveLength(2)
    expect((await mine.models.list()).data.map(({ id }) => id)).toEqual(["svc-lyt", "svc-embed"])
    for (const wrong of ["svc_live_wrong-wrong-wrong-wrong", hash, `${key}x`])
      expect(await errorOf(client(wrong).chat.completions.create(ask))).toMatchObject({
        ...{ status: 401, code: "authentication_error" },
      })
    expect(await errorOf(mine.files.list())).toMatchObject({ status: 404, code: "not_found" })
    expect((await fetch(`${platform.url}/readyz`)).status).toBe(200)
    expect(childrenOf(platform.process.pid)).toEqual([])
    expect(readdirSync(dataDir)).toEqual([])
    expect(JSON.stringify(platform.output())).not.toContain(key)
    expect(await platform.stop()).toBe(0)
  } finally {
    await platform.close()
  }
})

it("rakit check accepts config/minimal.yaml, with a hash or without one, and refuses a key", async () => {
  const { key, hash } = await makeKey()
  for (const given of [hash, ""]) {
    const { code, stdout } = await runCli(["check", "config/minimal.yaml"], {
      RAKIT_KEY_HASH: given,
    })
    expect([code, stdout]).toEqual([0, expect.stringContaining("This config is fine")])
    expect(stdout).not.toContain("database-postgres")
  }
  const refused = await runCli(["check", "config/minimal.yaml"], { RAKIT_KEY_HASH: key })
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining("make both with: npx rakit keys hash"),
  ])
  expect(refused.stderr).not.toContain(key)
})

it("a key with an unknown scope stops the start, and names the known ones", async () => {
  const file = join(folder, "scopes.yaml")
  const text = readFileSync(withoutWeights(), "utf8")
  writeFileSync(file, text.replace("name: app,", "name: app, scopes: [chat.completion],"))
  const { code, stdout, stderr } = await runCli(["serve", file], {
    ...{ RAKIT_DATA: join(folder, "other"), PORT: "0", HOST: "127.0.0.1" },
  })
  expect([code, stdout]).toEqual([1, expect.not.stringContaining("listens on")])
  expect(stderr).toMatch(/unknown scope 'chat\.completion'; scopes are \*, chat\.completions/)
})
