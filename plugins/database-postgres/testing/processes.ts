import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { afterEach, vi } from "vitest"
import { fakeLog } from "../../../testing/fakes/log.ts"
import { clusterIn } from "../embedded/cluster.ts"
import { readPidFile } from "../embedded/pid-file.ts"
import { stopServer } from "../embedded/stop.ts"

const script = fileURLToPath(new URL("./database-process.ts", import.meta.url))

export interface DatabaseProcess {
  readonly pid: number
  /** Resolves to `ready`, `failed ...`, or `gone` when it was killed first. */
  readonly greeting: string
  ask(sql: string): Promise<string>
  /** Closes everything and ends. */
  close(): Promise<void>
  /** Ends without closing. */
  exit(): Promise<void>
  /** `kill -9`. */
  kill(): Promise<void>
}

export interface Starting {
  /** Whether it waits for another server to leave the folder. */
  readonly waits: Promise<boolean>
  readonly greeted: Promise<DatabaseProcess>
  kill(): Promise<void>
}

// each process takes a second or more to start, and much more on a busy machine
vi.setConfig({ testTimeout: 120_000 })

const folders: string[] = []
const children = new Set<ChildProcess>()

/** Makes a data folder; after the test it is deleted, and the server in it stopped. */
export const makeFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "rakit-database-"))
  folders.push(folder)
  return folder
}

export const clusterOf = (folder: string) => clusterIn(folder, { maxConnections: 20 })

export const serverPid = (folder: string): number | undefined =>
  readPidFile(join(folder, "postgres"))?.pid

/** Starts a process with the database; `prefix` is a program that starts it, such as `setpriv`. */
export const spawnDatabase = (
  folder: string,
  mode: "server" | "command",
  prefix: readonly string[] = [],
): Starting => {
  const [file, ...args] = [...prefix, process.execPath, "--import", "tsx", script, folder, mode]
  const child = spawn(file!, args, { stdio: ["pipe", "pipe", "inherit"] })
  children.add(child)
  const exit = once(child, "exit").then(() => void children.delete(child))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async () => (await lines.next()).value ?? "gone"
  const first = next()
  const kill = () => {
    child.kill("SIGKILL")
    return exit
  }
  const ask = (sql: string) => {
    child.stdin.write(`${sql}\n`)
    return next()
  }
  const close = () => {
    child.stdin.end()
    return exit
  }
  const leave = () => {
    child.stdin.write("exit\n")
    return exit
  }
  return {
    waits: first.then((line) => line === "waiting"),
    greeted: first.then(async (line) => ({
      pid: child.pid!,
      greeting: line === "waiting" ? await next() : line,
      ask,
      close,
      exit: leave,
      kill,
    })),
    kill,
  }
}

export const startDatabase = (
  ...args: Parameters<typeof spawnDatabase>
): Promise<DatabaseProcess> => spawnDatabase(...args).greeted

afterEach(async () => {
  for (const child of children) child.kill("SIGKILL")
  for (const folder of folders.splice(0)) {
    await Effect.runPromise(stopServer(clusterOf(folder), fakeLog()))
    // an initdb that lost its parent may still write
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
})
