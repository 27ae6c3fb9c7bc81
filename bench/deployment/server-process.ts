import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "./code.ts"
import type { Deployment } from "./deployment.ts"

/** Output of a process with its times, in ms since spawn. */
export interface Milestones {
  readonly listeningMs: number
  /** Time at which all plugins had started. */
  readonly startedMs: number
  /** Time at which the models were open. */
  readonly readyMs: number
}

export interface ServerProcess extends Milestones {
  readonly url: string
  readonly pid: number
  /** Graceful shutdown, as by SIGTERM. */
  stop(): Promise<void>
}

/** Resolves with the time at which the output first matched. */
const said = (
  child: ChildProcess,
  startedMs: number,
  pattern: RegExp,
  lastWords: () => string,
): Promise<{ readonly ms: number; readonly match: RegExpExecArray }> =>
  new Promise((resolve, reject) => {
    let text = ""
    child.stdout?.on("data", (piece: string) => {
      text += piece
      const match = pattern.exec(text)
      if (match) resolve({ ms: performance.now() - startedMs, match })
    })
    child.once("error", reject)
    child.once("close", (code) =>
      reject(new Error(`the process ended with ${code}\n${text}\n${lastWords()}`)),
    )
  })

const endOf = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill(signal)
  await once(child, "exit")
}

const spawnQuiet = (
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  errors: "ignore" | number,
): ChildProcess => {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: process.env.HOME ?? "",
      TMPDIR: tmpdir(),
      MALLOC_ARENA_MAX: "2", // as `npm start`
      ...env,
    },
    stdio: ["ignore", "pipe", errors],
  })
  child.stdout?.setEncoding("utf8")
  return child
}

/** `rakit serve` as a process of its own. Its log goes to a file, as under a service manager. */
export const startServer = async (
  { folder, config, env }: Deployment,
  nodeArgs: readonly string[] = [],
): Promise<ServerProcess> => {
  const logFile = join(folder, "log")
  const log = openSync(logFile, "a")
  const startedMs = performance.now()
  const child = spawnQuiet([...nodeArgs, "runtime/rakit.js", "serve", config], env, log)
  closeSync(log)
  const lastWords = () => readFileSync(logFile, "utf8").slice(-2_000)
  try {
    const [listening, started, ready] = await Promise.all(
      [/is starting on (http:\S+)/, / listens on http/, /All models are ready/].map((pattern) =>
        said(child, startedMs, pattern, lastWords),
      ),
    )
    const url = (listening?.match[1] ?? "").replace("localhost", "127.0.0.1")
    return {
      url,
      pid: child.pid!,
      listeningMs: listening!.ms,
      startedMs: started!.ms,
      readyMs: ready!.ms,
      stop: () => endOf(child, "SIGTERM"),
    }
  } catch (error) {
    await endOf(child, "SIGTERM")
    throw error
  }
}

/** Time from spawn to exit, in ms. */
export const timeToEnd = async (args: readonly string[]): Promise<number> => {
  const startedMs = performance.now()
  await once(spawnQuiet(args, {}, "ignore"), "exit")
  return performance.now() - startedMs
}

export interface PlainProcess {
  readonly url: string
  readonly pid: number
  readonly listeningMs: number
  stop(): Promise<void>
}

/**
 * A node:http server of a few lines (peers/bare-server.js), which prints its address. `routes`: a
 * file with what it answers.
 */
export const startBareServer = async (routes?: string): Promise<PlainProcess> => {
  const startedMs = performance.now()
  const child = spawnQuiet(
    ["bench/peers/bare-server.js", ...(routes ? [routes] : [])],
    {},
    "ignore",
  )
  const { ms, match } = await said(child, startedMs, /listens on (http:\S+)/, () => "")
  return { url: match[1]!, pid: child.pid!, listeningMs: ms, stop: () => endOf(child, "SIGTERM") }
}
