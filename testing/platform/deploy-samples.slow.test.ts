import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, matchesGlob } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { missing } from "../proxies.ts"

/** That the files of deploy/ fit together, and the programs that read them take them. */
const root = join(import.meta.dirname, "../..")
const read = (path: string) => readFileSync(join(root, path), "utf8")
const folder = mkdtempSync(join(tmpdir(), "rakit-samples-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const isThere = (program: string) =>
  ["/usr/sbin", "/usr/bin", "/usr/local/bin"].some((at) => existsSync(join(at, program)))

/** Variables of a config file: those without a default must be set. */
const variablesOf = (path: string) => {
  const found = [...read(path).matchAll(/\$\{(\w+)(:-)?/g)]
  return {
    all: new Set(found.map(([, name]) => name!)),
    needed: new Set(found.flatMap(([, name, hasDefault]) => (hasDefault ? [] : [name!]))),
  }
}
const production = variablesOf("config/production.yaml")

describe("the Dockerfile", () => {
  const lines = read("deploy/Dockerfile")
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .filter((line) => /^[A-Z]+ /.test(line))
  const ignored = read("deploy/Dockerfile.dockerignore").trim().split("\n")
  const of = (word: string) =>
    lines.flatMap((line) => (line.startsWith(`${word} `) ? line.slice(word.length + 1) : []))

  it("copies only what is in the context or in an earlier stage", () => {
    const stages: string[] = []
    for (const line of lines) {
      const stage = / AS (\w+)$/.exec(line)?.[1]
      if (stage !== undefined) stages.push(stage)
      if (!line.startsWith("COPY ")) continue
      const words = line.split(" ").slice(1)
      const from = words[0]!.startsWith("--from=") ? words.shift()!.slice(7) : undefined
      if (from !== undefined) {
        expect([line, stages.includes(from)]).toEqual([line, true])
        continue
      }
      for (const path of words.slice(0, -1)) {
        expect([path, existsSync(join(root, path))]).toEqual([path, true])
        expect(ignored.filter((pattern) => path !== "." && matchesGlob(path, pattern))).toEqual([])
      }
    }
    expect(stages).toEqual(["build", "packages"])
  })

  it("leaves out of the context what git ignores and what is secret", () => {
    for (const path of [".git", "node_modules", "a/node_modules", "dist", ".rakit", ".rakit-drill"])
      expect([path, ignored.some((pattern) => matchesGlob(path, pattern))]).toEqual([path, true])
  })

  it("runs what it copied, as nobody's user, on the port that is asked for its health", () => {
    const env = Object.fromEntries(
      of("ENV").flatMap((line) => line.split(" ").map((pair) => pair.split("="))),
    ) as Record<string, string>
    expect(of("USER")).toEqual(["10001:10001"])
    expect(of("EXPOSE")).toEqual([env.PORT])
    expect(of("VOLUME").map((line) => JSON.parse(line))).toEqual([
      [env.RAKIT_DATA, env.RAKIT_MODELS],
    ])
    const [health] = of("HEALTHCHECK")
    expect(health).toContain("http://127.0.0.1:${process.env.PORT}/healthz")
    const files = (JSON.parse(read("package.json")) as { files: string[] }).files
    const [[, entry]] = of("ENTRYPOINT").map((line) => JSON.parse(line)) as [[string, string]]
    expect(files).toContain(entry)
    const [[, config]] = of("CMD").map((line) => JSON.parse(line)) as [[string, string]]
    expect(of("COPY").some((line) => line.startsWith(config))).toBe(true)
    for (const name of ["HOST", "PORT", "RAKIT_DATA", "RAKIT_MODELS"])
      expect([name, production.all.has(name)]).toEqual([name, true])
  })
})

describe("compose.yaml", () => {
  interface Service {
    readonly image: string
    readonly build?: { readonly context: string; readonly dockerfile: string }
    readonly command?: readonly string[]
    readonly environment?: Readonly<Record<string, string>>
    readonly depends_on?: object
    readonly volumes?: readonly string[]
    readonly read_only?: boolean
  }
  const { services, volumes } = parse(read("deploy/compose.yaml"), { merge: true }) as {
    readonly services: Readonly<Record<string, Service>>
    readonly volumes: object
  }

  it("sets what config/production.yaml needs, and nothing that it does not know", () => {
    for (const name of ["api", "worker"]) {
      const { environment = {}, build, command, read_only } = services[name]!
      expect(Object.keys(environment)).toEqual(expect.arrayContaining([...production.needed]))
      expect(Object.keys(environment).filter((key) => !production.all.has(key))).toEqual([])
      expect(existsSync(join(root, "deploy", build!.context, build!.dockerfile))).toBe(true)
      expect(command).toEqual(["serve", "config/production.yaml", "--role", name])
      expect(read_only).toBe(true)
    }
  })

  it("names services, volumes and files that are there", () => {
    for (const [name, { depends_on = {}, volumes: mounts = [] }] of Object.entries(services)) {
      const others = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on)
      expect([name, others.filter((other) => !(other in services))]).toEqual([name, []])
      for (const mount of mounts) {
        const [from] = mount.split(":") as [string]
        // certificates are the operator's
        if (from === "./certificates") continue
        const known = from.startsWith(".")
          ? existsSync(join(root, "deploy", from))
          : from in volumes
        expect([mount, known]).toEqual([mount, true])
      }
    }
    const { DATABASE_URL, S3_ENDPOINT } = services.api!.environment!
    expect(new URL(DATABASE_URL!.replace(/\$\{.*?\}/, "p")).hostname in services).toBe(true)
    expect(new URL(S3_ENDPOINT!).hostname in services).toBe(true)
    for (const sample of ["nginx.conf", "Caddyfile"])
      expect(read(`deploy/proxy/${sample}`)).toMatch(/\bapi:8080\b/)
  })

  it.skipIf(!isThere("docker"))("is taken by docker compose, if that is there", ({ skip }) => {
    const env = Object.fromEntries([...production.needed, "POSTGRES_PASSWORD"].map((n) => [n, "x"]))
    const args = ["compose", "-f", join(root, "deploy/compose.yaml"), "config", "-q"]
    try {
      execFileSync("docker", ["compose", "version"], { stdio: "ignore" })
    } catch {
      return skip()
    }
    execFileSync("docker", args, {
      env: { ...process.env, RAKIT_SECRET_KEY: "x", ...env },
      stdio: "pipe",
    })
  })
})

it.skipIf(missing("nginx"))("nginx takes the whole sample, with its certificates", () => {
  execFileSync(
    "openssl",
    [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", "privkey.pem", "-out", "fullchain.pem", "-subj", "/CN=api.example.com"],
    ],
    { cwd: folder, stdio: "pipe" },
  )
  const sample = read("deploy/proxy/nginx.conf")
  expect(sample).toContain("/etc/nginx/certificates/")
  const site = sample
    .replaceAll("/etc/nginx/certificates", folder)
    // a name that only the compose file's network knows
    .replace("server api:8080", "server 127.0.0.1:8080")
  writeFileSync(
    join(folder, "nginx.conf"),
    `pid ${folder}/pid;\nerror_log ${folder}/log;\nevents {}\nhttp {\n${site}\n}\n`,
  )
  const args = ["-t", "-e", join(folder, "log"), "-c", join(folder, "nginx.conf")]
  execFileSync("/usr/sbin/nginx", args, { stdio: "pipe" })
})

it.skipIf(!isThere("caddy"))("Caddy takes the sample, and its health checks ask /readyz", () => {
  const args = ["adapt", "--config", join(root, "deploy/proxy/Caddyfile"), "--adapter", "caddyfile"]
  const adapted = execFileSync("caddy", args, { stdio: "pipe" }).toString()
  expect(JSON.parse(adapted)).toHaveProperty("apps.http.servers")
  expect(adapted).toContain('"uri":"/readyz"')
  expect(adapted).toContain('"dial":"api:8080"')
})

describe("rakit.service", () => {
  const text = read("deploy/rakit.service")

  it("runs files of the package, and sets variables that the config knows", () => {
    const { files } = JSON.parse(read("package.json")) as { readonly files: readonly string[] }
    const home = /^WorkingDirectory=(.*)$/m.exec(text)![1]!
    const commands = [...text.matchAll(/^Exec\w+=\S+ (\S+) (\w+) (\S+)$/gm)]
    expect(commands.map(([, , verb]) => verb)).toEqual(["check", "serve"])
    for (const [, program] of commands) expect(files).toContain(program!.slice(home.length + 1))
    const names = /^Environment=(.*)$/m
      .exec(text)![1]!
      .split(" ")
      .map((pair) => pair.split("=")[0]!)
    const others = ["NODE_ENV", "MALLOC_ARENA_MAX"]
    expect(names.filter((name) => !production.all.has(name) && !others.includes(name))).toEqual([])
    // it has time to end its calls
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)![1])).toBeGreaterThan(30)
  })

  it.skipIf(!isThere("systemd-analyze"))("is taken by systemd", () => {
    const file = join(folder, "rakit.service")
    // node of this machine; what is missing on it is no mistake of the unit
    writeFileSync(file, text.replaceAll("/usr/bin/node", process.execPath))
    const args = ["verify", "--man=no", "--recursive-errors=no", file]
    const { status, stdout, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8" })
    // of a key that it does not know it only warns
    expect([status, stdout + stderr]).toEqual([0, ""])
  })
})
