import { spawn } from "node:child_process"
import { closeSync, openSync, renameSync, statSync } from "node:fs"
import { lchown, open, readdir } from "node:fs/promises"
import { join } from "node:path"
import { cannotStart } from "../failure.ts"
import type { Binaries } from "./binaries.ts"
import type { Cluster } from "./cluster.ts"
import { choosePort } from "./port.ts"
import { candidates, environment, type RunAs, runToEnd } from "./run-as.ts"

const longestLogBytes = 8 * 1024 * 1024

/** A server that was started and may not accept connections yet. */
export interface Launch {
  readonly pid: number | undefined
  /** Undefined while it runs, then its last output. */
  lastWords(): string | undefined
}

/** Small, durable, and quiet: errors of clients are reported to them and not logged. */
const settingsOf = (cluster: Cluster): Readonly<Record<string, string>> => ({
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  // commands and migrations connect, too, besides the pool of the server
  max_connections: String(cluster.maxConnections + 30),
  shared_buffers: "64MB",
  work_mem: "8MB",
  maintenance_work_mem: "64MB",
  max_wal_size: "512MB",
  // parallel plans need /dev/shm, which is tiny in many containers
  max_parallel_workers_per_gather: "0",
  max_parallel_maintenance_workers: "0",
  io_method: "sync",
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_min_messages: "log",
  log_min_error_statement: "panic",
  log_checkpoints: "off",
  ...(!cluster.durable && { fsync: "off", synchronous_commit: "off", full_page_writes: "off" }),
})

const rotate = (logFile: string): void => {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
  if (size > longestLogBytes) renameSync(logFile, `${logFile}.1`)
}

const textFrom = async (file: string, start: number): Promise<string> => {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4_000), 0, 4_000, start)
    return buffer.toString("utf8", 0, bytesRead)
  } finally {
    await handle.close()
  }
}

const giveAll = async (home: string, runAs: RunAs): Promise<void> => {
  const names = await readdir(home, { recursive: true })
  for (const path of [home, ...names.map((name) => join(home, name))])
    await lchown(path, runAs.uid!, runAs.gid!)
}

/**
 * Returns the user that the server can run as; changes the owner of the data where needed, which
 * only root can do.
 */
const chooseRunAs = async (cluster: Cluster, binaries: Binaries): Promise<RunAs> => {
  const owner = statSync(cluster.home)
  const reasons: string[] = []
  for (const runAs of candidates(owner)) {
    const { code, output } = await runToEnd(runAs, binaries.postgres, ["--version"], 10_000)
    if (code === 0) {
      if (process.getuid?.() === 0 && runAs.uid !== owner.uid) await giveAll(cluster.home, runAs)
      return runAs
    }
    reasons.push(`as ${runAs.about}: ${output.trim()}`)
  }
  throw cannotStart(
    `the embedded PostgreSQL can't run here; set DATABASE_URL to use a server. Tried ${reasons.join("; ")}`,
  )
}

const start = (cluster: Cluster, runAs: RunAs, program: string, port: number): Launch => {
  const settings = Object.entries(settingsOf(cluster)).flatMap(([name, value]) => [
    "-c",
    `${name}=${value}`,
  ])
  const { file, args, options } = runAs.command(program, [
    "-D",
    cluster.home,
    "-p",
    String(port),
    ...settings,
  ])
  const output = openSync(cluster.logFile, "a", 0o600)
  // in a process group of its own: Ctrl-C in the terminal reaches only this process, which stops
  // the server in order
  const child = spawn(file, args, {
    ...options,
    env: environment(),
    cwd: "/",
    detached: true,
    stdio: ["ignore", output, output],
  })
  closeSync(output)
  child.unref()
  let end: string | undefined
  child.once("error", (error) => {
    end = error.message
  })
  child.once("exit", (code, signalName) => {
    end ??= `it ended with ${signalName ?? `code ${code}`}`
  })
  return { pid: child.pid, lastWords: () => end }
}

/** Starts the server without waiting until it is ready. */
export const launch = async (
  cluster: Cluster,
  binaries: Binaries,
): Promise<{ readonly server: Launch; readonly log: () => Promise<string> }> => {
  rotate(cluster.logFile)
  const logStart = statSync(cluster.logFile, { throwIfNoEntry: false })?.size ?? 0
  const runAs = await chooseRunAs(cluster, binaries)
  const server = start(cluster, runAs, binaries.postgres, await choosePort(cluster.portFile))
  return { server, log: () => textFrom(cluster.logFile, logStart) }
}
