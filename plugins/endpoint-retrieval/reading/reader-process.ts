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

/** How the watch in the process ends it, and how V8 does over its heap. */
const memorySignals: readonly string[] = ["SIGKILL", "SIGABRT"]
const timeSignal = "SIGVTALRM"

const failure = (message: string, cause?: unknown) =>
  new PortError({ port: "document reader", message, ...(cause !== undefined && { cause }) })

type Answer = Effect.Effect<FromProcess, IngestFailure | PortError>

export interface ProcessLimits {
  /** The most memory of one process. */
  readonly memoryMb: number
  /** The time of processors that reading one file may take. */
  readonly limitMs: number
}

/** On a busy machine the clock goes on without the process; when it only waits, it is stuck. */
const clockOfCpu = 10

/** A process is ended when it has read so many files, as parsers leak, or holds half its memory. */
const filesOfProcess = 200

export interface ReaderProcess {
  /** It has read a file to its end, and may read another one. */
  readonly isReusable: () => boolean
  /**
   * Lets the process work until it has a message. It is killed when that is over its limits, or
   * when the effect is interrupted. What it said or how it ended since the last answer comes first:
   * the message is not sent then.
   */
  readonly ask: (message: ToProcess) => Answer
  readonly kill: () => void
}

const tooSlow = ({ limitMs }: ProcessLimits) =>
  new IngestFailure({
    code: "too_slow",
    message: `Reading the file takes more than ${limitMs / 1000} seconds.`,
  })
const tooLarge = ({ memoryMb }: ProcessLimits) =>
  new IngestFailure({
    code: "too_large",
    message: `Reading the file needs more than ${memoryMb} MB of memory.`,
  })

const ended = (limits: ProcessLimits, code: number | null, signal: string | null): Answer => {
  if (signal === timeSignal) return Effect.fail(tooSlow(limits))
  if (signal !== null && memorySignals.includes(signal)) return Effect.fail(tooLarge(limits))
  return Effect.fail(failure(`the process that reads files ended (${signal ?? `code ${code}`})`))
}

const spawn = ({ memoryMb, limitMs }: ProcessLimits): ChildProcess =>
  fork(entry, [String(memoryMb * megabyte), String(limitMs)], {
    execArgv: [`--max-old-space-size=${memoryMb}`, ...loader()],
    env: environment,
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  })

const isSpent = (message: FromProcess, files: number, memoryMb: number): boolean =>
  message.type !== "done" || files >= filesOfProcess || message.rss > (memoryMb * megabyte) / 2

export const startReaderProcess = (limits: ProcessLimits): ReaderProcess => {
  const child = spawn(limits)
  let isAlive = true
  let isReusable = false
  let files = 0
  let settle: ((answer: Answer) => void) | undefined
  /** What came while nobody asked. */
  let early: Answer | undefined
  const receive = (answer: Answer) => {
    if (settle) settle(answer)
    else early ??= answer
  }
  const end = (answer: Answer) => {
    isAlive = false
    receive(answer)
  }
  child.on("message", (message: FromProcess) => {
    isReusable = settle !== undefined && !isSpent(message, files, limits.memoryMb)
    receive(Effect.succeed(message))
  })
  child.on("exit", (code, signal) => end(ended(limits, code, signal)))
  child.on("error", (cause) => end(Effect.fail(failure("no process reads files", cause))))
  // an idle process keeps no command alive
  child.unref()
  child.channel?.unref()
  const kill = () => {
    isAlive = false
    child.kill("SIGKILL")
  }
  const ask: ReaderProcess["ask"] = (message) =>
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
        settle?.(Effect.fail(tooSlow(limits)))
      }, clockOfCpu * limits.limitMs)
      isReusable = false
      if (message.type === "read") files++
      if (early) settle(early)
      else if (isAlive) child.send(message, () => {})
      else settle(Effect.fail(failure("the process that reads files has ended")))
      return Effect.sync(() => {
        stop()
        kill()
      })
    })
  return { isReusable: () => isAlive && isReusable, ask, kill }
}
