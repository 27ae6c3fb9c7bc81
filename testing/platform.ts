import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Role } from "../core/services/deployment.ts"
import { openTestDatabase, type TestDatabase } from "./postgres.ts"

export { openTestDatabase, type TestDatabase } from "./postgres.ts"

/** The package's folder: sources are in `testing/`, compiled files in `dist/testing/`. */
const root = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? ".." : "../..", import.meta.url),
)

export interface Credentials {
  readonly base_url: string
  readonly email: string
  readonly password: string
  readonly api_key: string
}

/** The whole server as a process of its own, on a fresh database and an empty data folder. */
export interface Platform {
  /** The base URL, without `/v1`. */
  readonly url: string
  readonly credentials: Credentials
  readonly process: ChildProcess
  readonly env: Readonly<Record<string, string>>
  /** What it has printed so far. */
  output(): { readonly stdout: string; readonly stderr: string }
  /**
   * Sends a signal and waits for the exit. Returns the exit code, or the signal that killed the
   * process.
   */
  stop(signal?: NodeJS.Signals): Promise<number | string>
  /** Stops the server if it still runs, and removes its database and data folder. */
  close(): Promise<void>
}

export interface StartOptions {
  /**
   * The config file. By default `config/test.yaml` of the repository, which the package does not
   * hold.
   */
  readonly config?: string
  readonly env?: Readonly<Record<string, string>>
  /** Whether to wait until the models are loaded; true by default. */
  readonly ready?: boolean
  /**
   * A fresh database on the test server by default; `embedded`: the server's own; or the URL of a
   * shared one.
   */
  readonly database?: "fresh" | "embedded" | URL
  /** What the process does; `all` by default. */
  readonly role?: Role
  /** The data folder; by default a new one, which `close` removes. */
  readonly dataDir?: string
}

const databaseFor = async (
  database: NonNullable<StartOptions["database"]>,
): Promise<Pick<TestDatabase, "url" | "close">> => {
  if (database === "fresh") return openTestDatabase()
  return { url: database === "embedded" ? "" : database.href, close: async () => {} }
}

/** Starts the command line as a user does: compiled if `dist/` is fresh. */
export const cliCommand = (
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): ChildProcess =>
  spawn(process.execPath, [join(root, "runtime/rakit.js"), ...args], {
    cwd: root,
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", TMPDIR: tmpdir(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  })

const collect = (child: ChildProcess) => {
  const text = { stdout: "", stderr: "" }
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.setEncoding("utf8").on("data", (piece: string) => {
      text[name] += piece
    })
  return text
}

/** Runs a command of the command line to its end. */
export const runCli = async (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> => {
  const child = cliCommand(args, env)
  const text = collect(child)
  const [code] = (await once(child, "close")) as [number | null]
  return { code, ...text }
}

/**
 * Resolves when `isThere` holds for what the process printed; rejects when the process ends before,
 * or a model can't be opened.
 */
const waitFor = (
  child: ChildProcess,
  text: { readonly stdout: string; readonly stderr: string },
  isThere: () => boolean,
): Promise<void> =>
  new Promise((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(`${reason}\n${text.stdout}\n${text.stderr}`))
    const look = () => {
      if (isThere()) resolve()
      else if (text.stderr.includes('"model.open_failed"')) fail("a model can't be opened")
    }
    child.stdout?.on("data", look)
    child.stderr?.on("data", look)
    child.once("close", (code) => fail(`the server ended with ${code}`))
    look()
  })

/** Empty unless this server made the first account. */
const readCredentials = (folder: string): Credentials => {
  const file = join(folder, "credentials.json")
  return existsSync(file)
    ? (JSON.parse(readFileSync(file, "utf8")) as Credentials)
    : { base_url: "", email: "", password: "", api_key: "" }
}

const listening = /listens on (http:\S+)/

export const startPlatform = async (options: StartOptions = {}): Promise<Platform> => {
  const { config = join(root, "config/test.yaml"), env = {}, ready = true } = options
  const database = await databaseFor(options.database ?? "fresh")
  const folder = options.dataDir ?? mkdtempSync(join(tmpdir(), "rakit-platform-"))
  const all = { RAKIT_DATA: folder, DATABASE_URL: database.url, PORT: "0", ...env }
  const child = cliCommand(["serve", config, "--role", options.role ?? "all"], all)
  const text = collect(child)
  await waitFor(child, text, () =>
    ready ? text.stdout.includes("All models are ready") : /listens on \S+\n/.test(text.stdout),
  ).catch((cause) => {
    child.kill("SIGKILL")
    throw cause
  })
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    const ended = child.exitCode ?? child.signalCode
    if (ended !== null) return ended
    child.kill(signal)
    const [code, killed] = (await once(child, "exit")) as [number | null, string | null]
    return code ?? killed ?? "unknown"
  }
  return {
    url: (listening.exec(text.stdout)?.[1] ?? "").replace("localhost", "127.0.0.1"),
    credentials: readCredentials(folder),
    process: child,
    env: all,
    output: () => text,
    stop,
    close: async () => {
      // an embedded database needs an orderly stop of its server
      await stop(options.database === "embedded" ? "SIGTERM" : "SIGKILL")
      if (options.dataDir === undefined) rmSync(folder, { recursive: true, force: true })
      await database.close()
    },
  }
}
