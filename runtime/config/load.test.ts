import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { loadConfig } from "./load.ts"
import { ConfigError } from "./problems.ts"

const write = (text: string): string => {
  const file = join(mkdtempSync(join(tmpdir(), "rakit-config-")), "deployment.yaml")
  writeFileSync(file, text)
  return file
}

const load = (text: string, env: Record<string, string> = {}) =>
  loadConfig(write(text), env).deployment

const refusal = (text: string, env: Record<string, string> = {}): string => {
  try {
    load(text, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  throw new Error("the config was not refused")
}

describe("loadConfig", () => {
  it("fills in defaults", () => {
    const fixture = load("plugins: {}")
    expect(fixture).toMatchObject({
      name: "rakit",
      dataDir: ".rakit",
      server: { port: 8080 },
      models: [],
    })
  })

  it("takes variables and defaults, and reads them as numbers where the schema wants numbers", () => {
    const text = 'plugins: {}\nserver: { port: "${PORT:-8080}" }\nname: ${NAME:-none}'
    expect(load(text)).toMatchObject({ server: { port: 8080 }, name: "none" })
    expect(load(text, { PORT: "9001", NAME: "123" })).toMatchObject({
      server: { port: 9001 },
      name: "123",
    })
    expect(load(text, { PORT: "" }).server.port).toBe(8080)
  })

  it("leaves $${ alone", () => {
    expect(load("plugins: {}\nname: a$${B}").name).toBe("a${B}")
  })

  it("names file, line, path and fix", () => {
    const text = refusal("plugins: {}\nserver:\n  prt: 1\n")
    expect(text).toMatch(
      /deployment\.yaml:3:8 server\.prt: unknown key 'prt'\n {4}Fix: write 'port', or remove it\. Known keys: host, port/,
    )
  })

  it("never shows the value of a variable", () => {
    const text = refusal('plugins: {}\nserver: { port: "${SECRET}" }', { SECRET: "hunter2hunter2" })
    expect(text).toContain("server.port")
    expect(text).toContain("The environment variable in this line sets it.")
    expect(text).not.toContain("hunter2")
  })

  it.each([
    [
      "a missing variable",
      "plugins: {}\nname: ${NOPE}",
      "the environment variable NOPE is not set",
    ],
    ["missing plugins", "name: x", "'plugins' is missing"],
    [
      "an unknown task",
      "plugins: {}\nmodels: [{ id: a, task: talk, backend: x, limits: { contextTokens: 1 } }]",
      'models[0].task: expected "chat" | "embed"',
    ],
    [
      "a wrong digest",
      "plugins: {}\nmodels: [{ id: a, task: chat, backend: x, limits: { contextTokens: 1 }, sources: [{ url: 'file:x', sha256: abc }] }]",
      "64 hexadecimal digits",
    ],
    [
      "a model that is listed twice",
      "plugins: {}\nmodels: [&m { id: a, task: chat, backend: x, limits: { contextTokens: 1 } }, *m]",
      "the model 'a' is listed twice",
    ],
    ["a plugin that is listed twice", "plugins: { a: {}, a: {} }", "Map keys must be unique"],
    ["broken YAML", "plugins: {", "Fix: correct the YAML (inside { }"],
    ["a list instead of a map", "- a", "a deployment is a map of keys"],
  ])("refuses %s", (_, text, message) => {
    expect(refusal(text)).toContain(message)
  })

  it("takes no password in the address of a collector: the log names that address", () => {
    const otel = (endpoint: string) => `plugins: {}\notel: { endpoint: "${endpoint}" }`
    expect(load(otel("https://otel.example.com/v1/traces")).otel.endpoint).toContain("otel")
    const text = refusal(otel("https://me:hunter2@otel.example.com"))
    expect(text).toContain("otel.endpoint: must be http(s)://host")
    expect(text).not.toContain("hunter2")
  })

  it("says that there is no file", () => {
    expect(() => loadConfig("/nowhere/deployment.yaml", {})).toThrow("there is no such file")
  })

  it("takes file: sources of adapters relative to the config file, too", () => {
    const file = write(
      "plugins: {}\nmodels: [{ id: a, task: chat, backend: x, limits: { contextTokens: 1 }, adapters: [{ id: b, sources: [{ url: 'file:m/b/' }] }] }]",
    )
    const [adapter] = loadConfig(file, {}).deployment.models[0]?.adapters ?? []
    expect(adapter).toEqual({ id: "b", sources: [{ url: `file:${join(dirname(file), "m/b")}/` }] })
  })

  it.each([
    ["./m/x.gguf", "m/x.gguf"],
    ["../x.gguf", "../x.gguf"],
    ["./folder/", "folder/"],
  ])("takes the path %s as a source, relative to the config file", (path, place) => {
    const file = write(
      `plugins: {}\nmodels: [{ id: a, task: chat, backend: x, limits: { contextTokens: 1 }, sources: [{ url: ${path} }] }]`,
    )
    const [source] = loadConfig(file, {}).deployment.models[0]!.sources
    expect(source?.url).toBe(`file:${join(dirname(file), place)}`)
  })

  it("takes file: sources relative to the config file", () => {
    const file = write(
      "plugins: {}\nmodels: [{ id: a, task: chat, backend: x, limits: { contextTokens: 1 }, sources: [{ url: 'file:m/x.gguf' }] }]",
    )
    const url = loadConfig(file, {}).deployment.models[0]?.sources[0]?.url
    expect(url).toBe(`file:${join(file, "../m/x.gguf")}`)
  })
})
