import { execFileSync, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"

export interface PostgresServer {
  readonly about: string
  /** URL of an empty database. */
  readonly url: string
  readonly pid: number
  /** The URL of another empty database on the same server, which goes with `stop`. */
  another(): Promise<string>
  stop(): Promise<void>
}

const debianFolder = "/usr/lib/postgresql"

const newestDebian = (): string | undefined => {
  if (!existsSync(debianFolder)) return undefined
  const versions = readdirSync(debianFolder).filter((version) =>
    existsSync(join(debianFolder, version, "bin/initdb")),
  )
  return versions.toSorted((a, b) => Number(b) - Number(a))[0]
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** PostgreSQL refuses to run as root. */
const owner = (): { readonly uid?: number; readonly gid?: number } => {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }))
  return { uid: id("-u"), gid: id("-g") }
}

const untilItAnswers = async (url: string): Promise<string> => {
  for (let attempt = 1; ; attempt++) {
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      return (await client.query("show server_version")).rows[0].server_version
    } catch (error) {
      if (attempt === 100) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    } finally {
      await client.end().catch(() => {})
    }
  }
}

const otherName = `bench_${randomBytes(6).toString("hex")}`

const ask = async (url: string, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(statement)
  await client.end()
}

const addDatabase = async (url: string): Promise<string> => {
  await ask(url, `CREATE DATABASE ${otherName}`)
  return Object.assign(new URL(url), { pathname: `/${otherName}` }).href
}

/**
 * A server of the distribution with its own settings, so every commit of money is flushed to disk,
 * in a temporary folder.
 */
const startDebian = async (
  version: string,
  settings: readonly string[] = [],
): Promise<PostgresServer> => {
  const bin = (name: string) => join(debianFolder, version, "bin", name)
  const folder = mkdtempSync(join(tmpdir(), "rakit-bench-postgres-"))
  const runAs = owner()
  const password = randomBytes(16).toString("hex")
  const passwordFile = join(folder, "password")
  writeFileSync(passwordFile, password, { mode: 0o600 })
  if (runAs.uid !== undefined)
    for (const path of [folder, passwordFile]) chownSync(path, runAs.uid, runAs.gid!)
  const data = join(folder, "data")
  execFileSync(
    bin("initdb"),
    [
      "-D",
      data,
      "-U",
      "bench",
      "-A",
      "scram-sha-256",
      `--pwfile=${passwordFile}`,
      "-E",
      "UTF8",
      "--locale=C",
    ],
    { ...runAs, cwd: "/", stdio: "ignore" },
  )
  const port = await freePort()
  const child = spawn(
    bin("postgres"),
    [
      "-D",
      data,
      "-p",
      String(port),
      "-c",
      "listen_addresses=127.0.0.1",
      "-c",
      "unix_socket_directories=",
      ...settings.flatMap((setting) => ["-c", setting]),
    ],
    {
      ...runAs,
      cwd: "/",
      stdio: "ignore",
    },
  )
  const stopNow = () => child.kill("SIGINT")
  process.once("exit", stopNow)
  const stop = async () => {
    const ended = once(child, "exit")
    if (child.exitCode === null && stopNow()) await ended
    process.off("exit", stopNow)
    rmSync(folder, { recursive: true, force: true })
  }
  const url = `postgres://bench:${password}@127.0.0.1:${port}/postgres`
  try {
    return {
      about: `PostgreSQL ${await untilItAnswers(url)}, default settings`,
      url,
      pid: child.pid!,
      another: () => addDatabase(url),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** A server of the distribution, with settings as `name=value`; undefined where none is installed. */
export const startInstalled = async (
  settings: readonly string[],
): Promise<PostgresServer | undefined> => {
  const version = newestDebian()
  return version === undefined ? undefined : startDebian(version, settings)
}
