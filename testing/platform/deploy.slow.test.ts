import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { parseAllDocuments } from "yaml"
import { runCli } from "../platform.ts"

const root = join(import.meta.dirname, "../..")
const folder = mkdtempSync(join(tmpdir(), "rakit-deploy-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const variables = {
  DATABASE_URL: "postgres://u:p@127.0.0.1/r",
  S3_ENDPOINT: "http://127.0.0.1:7070",
  S3_BUCKET: "rakit",
  S3_REGION: "us-east-1",
  S3_ACCESS_KEY_ID: "a",
  S3_SECRET_ACCESS_KEY: "b",
  S3_FORCE_PATH_STYLE: "true",
  CHAT_ENGINE_URL: "http://127.0.0.1:8000",
  EMBED_ENGINE_URL: "http://127.0.0.1:8001",
  RERANK_ENGINE_URL: "http://127.0.0.1:8002",
  SMTP_URL: "",
  PUBLIC_URL: "https://api.example.com",
}

it("config/production.yaml is fine with the variables that it documents, and names one that is missing", async () => {
  const file = join(root, "config/production.yaml")
  const whole = await runCli(["check", file], { ...variables, RAKIT_DATA: folder })
  expect(whole).toMatchObject({ code: 0 })
  const { DATABASE_URL: _, ...rest } = variables
  const missing = await runCli(["check", file], { ...rest, RAKIT_DATA: folder })
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining("DATABASE_URL")])
}, 60_000)

describe("deploy/prune.mjs", () => {
  it("leaves this platform's runtime alone and removes the others", () => {
    const packages = join(folder, "node_modules")
    for (const name of ["onnxruntime-node", "effect", "tokenizers"])
      cpSync(join(root, "node_modules", name), join(packages, name), { recursive: true })
    const bin = join(packages, "onnxruntime-node/bin")
    const before = readdirSync(bin, { recursive: true }).length
    const script = join(root, "deploy/prune.mjs")
    execFileSync(process.execPath, [script, folder, "--dry-run"])
    expect(readdirSync(bin, { recursive: true })).toHaveLength(before)
    execFileSync(process.execPath, [script, folder])
    const [version] = readdirSync(bin)
    expect(readdirSync(join(bin, version!))).toEqual([process.platform])
    expect(readdirSync(join(bin, version!, process.platform))).toEqual([process.arch])
    const load = `require(${JSON.stringify(join(packages, "onnxruntime-node/bin", version!, process.platform, process.arch, "onnxruntime_binding.node"))}); import(${JSON.stringify(join(packages, "effect/dist/index.js"))})`
    execFileSync(process.execPath, ["-e", load])
    expect(existsSync(join(packages, "effect/src"))).toBe(false)
    const binaries = readdirSync(join(packages, "tokenizers")).filter((x) => x.endsWith(".node"))
    expect(binaries).toHaveLength(1)
    execFileSync(process.execPath, [
      "-e",
      `require(${JSON.stringify(join(packages, "tokenizers"))})`,
    ])
  }, 60_000)
})

it("compose.yaml and the chart's values are YAML, and the templates close what they open", () => {
  const read = (path: string) => readFileSync(join(root, "deploy", path), "utf8")
  for (const file of ["compose.yaml", "helm/values.yaml", "helm/Chart.yaml"])
    expect(parseAllDocuments(read(file), { merge: true }).flatMap(({ errors }) => errors)).toEqual(
      [],
    )
  for (const file of readdirSync(join(root, "deploy/helm/templates"))) {
    const text = read(`helm/templates/${file}`)
    const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0
    expect([file, count(/\{\{-? ?(if|range) /g)]).toEqual([file, count(/\{\{-? ?end /g)])
    // with a word for each value it is YAML
    const plain = text
      .replaceAll("{{- else }}", "---")
      .replaceAll(/^\{\{.*\}\}$/gm, "")
      .replaceAll(/\{\{.*?\}\}/g, "value")
    expect(parseAllDocuments(plain).flatMap(({ errors }) => errors)).toEqual([])
  }
})
