import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import OpenAI, { toFile } from "openai"
import * as tar from "tar"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { openTestDatabase, type TestDatabase } from "./postgres.ts"

/**
 * What an author outside the repository does, with the packed package: installs it, type-checks two
 * plugins strictly, runs the contract suites
 * of their ports, and serves a config file that names them. Dependencies are links to the
 * repository's own, and only those that rakit's
 * package.json or CONTRIBUTING.md names: whatever else the package imports is missing there, as it
 * would be after `npm install`.
 */
const root = fileURLToPath(new URL("..", import.meta.url))
const outside = mkdtempSync(join(tmpdir(), "rakit-outside-"))
const modules = join(outside, "node_modules")
const run = promisify(execFile)

const [packageJson, tsconfig] = [
  ...readFileSync(join(root, "CONTRIBUTING.md"), "utf8")
    .split("## A plugin of your own outside this repository")[1]!
    .matchAll(/```json\n([\s\S]*?)```/g),
].map(([, text]) => text!) as [string, string]

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

const link = (name: string): void => {
  const place = join(modules, name)
  if (existsSync(place)) return
  mkdirSync(dirname(place), { recursive: true })
  symlinkSync(join(root, "node_modules", name), place)
}

const unpack = async (): Promise<void> => {
  if (!existsSync(join(root, "dist/testing/index.d.ts"))) throw new Error("run `npm run build`")
  const { stdout } = await run(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--pack-destination", outside],
    { cwd: root },
  )
  const [{ filename }] = JSON.parse(stdout) as [{ readonly filename: string }]
  const rakit = join(modules, "rakit")
  mkdirSync(rakit, { recursive: true })
  await tar.x({ file: join(outside, filename), cwd: rakit, strip: 1 })
}

const install = async (): Promise<void> => {
  await unpack()
  const own = JSON.parse(packageJson) as Manifest
  const rakit = JSON.parse(readFileSync(join(modules, "rakit/package.json"), "utf8")) as Manifest
  const names = [rakit.dependencies, own.peerDependencies, own.devDependencies].flatMap((all) =>
    Object.keys(all ?? {}),
  )
  for (const name of names) if (name !== "rakit") link(name)
}

/**
 * Entries whose declarations must type-check without further packages; `testing/smtp` needs two.
 */
const entries = ["core", "testing", "testing/backend", "testing/global-setup", "testing/platform"]

/** A package of its own, linked into `node_modules` as a workspace would be. */
const writePlugin = (example: string, name: string, manifest = packageJson): void => {
  const folder = join(outside, example)
  cpSync(join(root, "examples", example), folder, { recursive: true })
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ ...(JSON.parse(manifest) as object), name }),
  )
  writeFileSync(join(folder, "tsconfig.json"), tsconfig)
  symlinkSync(folder, join(modules, name))
  const imports = entries
    .map((entry, i) => `export type * as e${i} from "rakit/${entry}"\n`)
    .join("")
  writeFileSync(join(folder, "entries.ts"), imports)
}

const tool = (name: string, args: readonly string[], cwd: string) =>
  run(process.execPath, [join(modules, name), ...args], { cwd }).catch(
    (cause: { readonly stdout: string; readonly stderr: string }) => {
      throw new Error(`${cause.stdout}\n${cause.stderr}`)
    },
  )

const config = `name: outside
dataDir: \${RAKIT_DATA}
server: { port: 0 }
plugins:
  database-postgres: { url: "\${DATABASE_URL:-}" }
  signing-keys: {}
  mail-smtp: {}
  billing-ledger: {}
  accounts: {}
  idempotency-postgres: {}
  rakit-model-tiny: { price: { output: 500 } }
  rakit-storage-memory: {}
  ./write-a-backend/plugin.ts: {}
  backend-onnx: {}
  endpoint-models: {}
  endpoint-files: {}
  endpoint-chat: {}
models:
  - id: babble
    task: chat
    limits: { contextTokens: 4096, maxOutputTokens: 512 }
    capabilities: [chat]
    price: { input: 1500, output: 6000 }
    backend: babble
`

let database: TestDatabase | undefined
beforeAll(async () => {
  await install()
  writePlugin("write-a-storage", "rakit-storage-memory")
  writePlugin("write-a-backend", "rakit-backend-babble")
  const readme = readFileSync(join(root, "examples/add-a-model/README.md"), "utf8")
  const [, manifest] = /```json\n([\s\S]*?)```/.exec(readme)!
  // without an entry for `require`; the config names it before what makes Node read TypeScript
  const forImport = { ...(JSON.parse(manifest!) as object), exports: { import: "./plugin.ts" } }
  writePlugin("add-a-model", "rakit-model-tiny", JSON.stringify(forImport))
}, 120_000)
afterAll(async () => {
  await database?.close()
  rmSync(outside, { recursive: true, force: true })
})

const packed = (folder: string): readonly string[] =>
  readdirSync(join(modules, "rakit", folder), { recursive: true, encoding: "utf8" })

it("packs what a server and an author need, and neither tests nor their helpers nor sources", () => {
  const all = ["dist", "plugins", "runtime"].flatMap((folder) =>
    packed(folder).map((path) => `${folder}/${path}`),
  )
  expect(all).toContain("dist/runtime/cli.js")
  expect(all).toContain("dist/testing/index.d.ts")
  expect(all.filter((path) => /\.test\.|\.map$|(^|\/)fixtures?(\/|$)/.test(path))).toEqual([])
  expect(
    all.filter((path) => /^(dist\/)?(core|plugins|runtime)\/.*\/testing(\/|$)/.test(path)),
  ).toEqual([])
  expect(all.filter((path) => /(?<!\.d)\.ts$/.test(path))).toEqual([])
})

it("packs the files that the config files of its examples name", () => {
  const configs = packed("examples").filter((path) => path.endsWith(".yaml"))
  const named = configs.flatMap((path) => {
    const file = join(modules, "rakit/examples", path)
    const urls = readFileSync(file, "utf8").matchAll(/"file:(\.[^"]+)"/g)
    return [...urls].map(([, url]) => join(dirname(file), url!))
  })
  expect(named).toHaveLength(4)
  expect(named.filter((path) => !existsSync(path))).toEqual([])
})

describe.each([
  ["write-a-storage", 20],
  ["write-a-backend", 9],
])("%s", (example, leastTests) => {
  it("type-checks strictly, the package's declarations too", async () => {
    await tool("typescript/bin/tsc", ["-p", "."], join(outside, example))
  }, 120_000)

  it("runs the contract suite", async () => {
    const report = join(outside, `${example}.json`)
    await tool(
      "vitest/vitest.mjs",
      ["run", "--reporter=json", `--outputFile=${report}`],
      join(outside, example),
    )
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, "utf8")) as Record<
      string,
      number
    >
    expect(numFailedTests).toBe(0)
    expect(numPassedTests).toBeGreaterThanOrEqual(leastTests)
  }, 120_000)
})

it("serves a config file that names all three, and chats and keeps a file through the official client", async () => {
  database = await openTestDatabase()
  const data = join(outside, "data")
  writeFileSync(join(outside, "rakit.yaml"), config)
  const server = spawn(
    process.execPath,
    [join(modules, "rakit/runtime/rakit.js"), "serve", "rakit.yaml"],
    {
      cwd: outside,
      env: { PATH: process.env.PATH, HOME: outside, RAKIT_DATA: data, DATABASE_URL: database.url },
      stdio: ["ignore", "pipe", "pipe"],
    },
  )
  let output = ""
  for (const stream of [server.stdout, server.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text
    })
  try {
    await vi.waitFor(
      () => {
        if (server.exitCode !== null) throw new Error(`the server ended:\n${output}`)
        expect(output).toContain("All models are ready")
      },
      { timeout: 60_000, interval: 50 },
    )
    const credentials = JSON.parse(readFileSync(join(data, "credentials.json"), "utf8")) as {
      readonly api_key: string
    }
    const port = /listens on http:\/\/[^:]+:(\d+)/.exec(output)?.[1]
    const client = new OpenAI({
      baseURL: `http://127.0.0.1:${port}/v1`,
      apiKey: credentials.api_key,
      maxRetries: 0,
    })
    const chat = await client.chat.completions.create({
      model: "babble",
      messages: [{ role: "user", content: "Tell me about the sea." }],
      max_tokens: 8,
    })
    expect(chat.choices[0]?.message.content?.split(" ")).toHaveLength(8)
    expect(chat.usage).toMatchObject({ completion_tokens: 8 })
    const tiny = await client.chat.completions.create({
      model: "tiny",
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: 4,
    })
    expect(tiny.model).toBe("tiny")
    const file = await client.files.create({
      file: await toFile(Buffer.from('{"a":1}\n'), "a.jsonl"),
      purpose: "batch",
    })
    expect(await (await client.files.content(file.id)).text()).toBe('{"a":1}\n')
  } finally {
    if (server.exitCode === null) {
      server.kill("SIGTERM")
      await once(server, "exit")
    }
  }
}, 120_000)
