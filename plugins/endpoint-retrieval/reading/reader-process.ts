import { type ChildProcess, fork } from "node:child_process"
import { createRequire } from "node:module"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Effect } from "effect"
import { megabyte, PortError } from "../../../core/index.ts"
import { IngestFailure } from "./ingest-failure.ts"
import type { FromProcess, ToProcess } from "./protocol.ts"

const isSource = import.meta.url.endsWith(".ts")
const entry = fileURLToPath(new URL(isSource ? "./entry.ts" : "./entry.js", import.meta.url))
const loader = () =>
  isSource ? ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href] : []

/** No variables of the server, which hold its secrets; fewer arenas of malloc, so less memory. */
const environment = { MALLOC_ARENA_MAX: "2" }

/** The watch in the process kills it over its memory; V8 aborts over its heap. */
const memorySignals: readonly string[] = ["SIGKILL", "SIGABRT"]

const failure = (message: string, cause?: unknown) =>
  new PortError({ port: "document reader", message, ...(cause !== undefined && { cause }) })

type Answer = Effect.Effect<FromProcess, IngestFailure | PortError>

export interface ProcessLimits {
  /** The most memory of one process. */
  readonly memoryMb: number
  /** The time that reading one file may take; waiting for its bytes, or for a reader, is free. */
  readonly limitMs: number
}

/** A process is ended when it has read so many files, as parsers leak, or holds half its memory. */
const filesOfProcess = 200

export interface ReaderProcess {
  /** It has ended a file, and may read another one. */
  readonly isReusable: () => boolean
  /**
   * Lets the process work until it has a message, `leftMs` at most. The process is killed when
   * that is over, or when the effect is interrupted.
   */
  readonly ask: (message: ToProcess, leftMs: number) => Answer
  readonly kill: () => void
}

const ended = (memoryMb: number, code: number | null, signal: string | null): Answer =>
  signal !== null && memorySignals.includes(signal)
    ? Effect.fail(
        new IngestFailure({
          code: "too_large",
          message: `Reading the file needs more than ${memoryMb} MB of memory.`,
        }),
      )
    : Effect.fail(failure(`the process that reads files ended (${signal ?? `code ${code}`})`))

const tooSlow = (limitMs: number) =>
  new IngestFailure({
    code: "too_slow",
    message: `Reading the file takes more than ${limitMs / 1000} seconds.`,
  })

const spawn = (memoryMb: number): ChildProcess =>
  fork(entry, [String(memoryMb * megabyte)], {
    execArgv: [`--max-old-space-size=${memoryMb}`, ...loader()],
    env: environment,
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  })

const isSpent = (message: FromProcess, files: number, memoryMb: number): boolean =>
  files >= filesOfProcess ||
  (message.type === "done" ? message.rss > (memoryMb * megabyte) / 2 : message.type !== "failed")

export const startReaderProcess = ({ memoryMb, limitMs }: ProcessLimits): ReaderProcess => {
  const child = spawn(memoryMb)
  let isAlive = true
  let isReusable = false
  let files = 0
  let settle: ((answer: Answer) => void) | undefined
  const end = (answer: Answer) => {
    isAlive = false
    settle?.(answer)
  }
  child.on("message", (message: FromProcess) => {
    isReusable = !isSpent(message, files, memoryMb)
    settle?.(Effect.succeed(message))
  })
  child.on("exit", (code, signal) => end(ended(memoryMb, code, signal)))
  child.on("error", (cause) => end(Effect.fail(failure("no process reads files", cause))))
  // an idle process keeps no command alive
  child.unref()
  child.channel?.unref()
  const kill = () => {
    isAlive = false
    child.kill("SIGKILL")
  }
  const ask: ReaderProcess["ask"] = (message, leftMs) =>
    Effect.callback((resume) => {
      const stop = () => {
        clearTimeout(timer)
        settle = undefined
      }
      settle = (answer) => {
        stop()
        resume(answer)
      }
      const timer = setTimeout(() => {
        kill()
        settle?.(Effect.fail(tooSlow(limitMs)))
      }, leftMs)
      isReusable = false
      if (message.type === "read") files++
      if (isAlive) child.send(message, () => {})
      else settle(Effect.fail(failure("the process that reads files has ended")))
      return Effect.sync(() => {
        stop()
        kill()
      })
    })
  return { isReusable: () => isAlive && isReusable, ask, kill }
}
