import { writeFileSync } from "node:fs"
import { setPriority } from "node:os"
import { Worker } from "node:worker_threads"
import type { Bytes } from "../extract/extract-parts.ts"
import type { Kind } from "../extract/kind.ts"
import { ReadFailure } from "../extract/read-failure.ts"
import type { FromProcess, ReadLimits, ToProcess } from "./protocol.ts"
import { readBatches } from "./read-batches.ts"

/**
 * A process that reads files, one at a time, for the server that forked it. Parsers may loop, or
 * take memory, which no heap limit bounds as array buffers are outside of the heap: a thread looks
 * at the whole process, and ends it when it has too much memory, has taken too much time of a
 * processor for one file, or has lost its server.
 */
const watch = `
  const { workerData } = require("node:worker_threads")
  const { memoryBytes, cpuMs, startedMs, server } = workerData
  const end = (signal) => process.kill(process.pid, signal)
  setInterval(() => {
    const { user, system } = process.cpuUsage()
    if (process.memoryUsage.rss() > memoryBytes || process.ppid !== server) end("SIGKILL")
    if ((user + system) / 1000 - startedMs[0] > cpuMs) end("SIGVTALRM")
  }, 50)
`

/** The time of processors that this process had taken when it started the file. */
const startedMs = new Float64Array(new SharedArrayBuffer(8))
const startFile = (): void => {
  const { user, system } = process.cpuUsage()
  startedMs[0] = (user + system) / 1000
}

const startWatch = ([memoryBytes, cpuMs]: readonly number[]): void => {
  new Worker(watch, {
    eval: true,
    execArgv: [],
    workerData: { memoryBytes, cpuMs, startedMs, server: process.ppid },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 },
  }).unref()
}

/** A busy machine serves requests first, and one without memory ends this process first. */
const standBack = (): void => {
  try {
    setPriority(5)
    writeFileSync("/proc/self/oom_score_adj", "1000")
  } catch {
    // not on this system
  }
}

let onMessage: ((message: ToProcess) => void) | undefined
const take = (): Promise<ToProcess> =>
  new Promise((resolve) => {
    onMessage = resolve
  })
const send = (message: FromProcess): void => {
  process.send!(message)
}
const ask = (message: FromProcess): Promise<ToProcess> => {
  const answer = take()
  send(message)
  return answer
}

async function* bytesOfServer(): Bytes & AsyncGenerator<Uint8Array> {
  for (;;) {
    const message = await ask({ type: "more-bytes" })
    if (message.type !== "bytes") return
    yield* message.bytes
  }
}

const outOfMemory = /allocation failed|Invalid array (buffer )?length|Invalid string length/i

const failureOf = (cause: unknown): FromProcess => {
  if (cause instanceof ReadFailure)
    return { type: "failed", code: cause.code, message: cause.message }
  const message = cause instanceof Error ? cause.message : String(cause)
  if (cause instanceof RangeError && outOfMemory.test(message))
    return { type: "failed", code: "too_large", message: "Reading the file needs too much memory." }
  return { type: "crashed", message }
}

/** Each batch but the last waits for the server's word. */
const read = async (kind: Kind, limits: ReadLimits): Promise<void> => {
  const batches = readBatches(kind, bytesOfServer(), limits)
  let last = await batches.next()
  for (;;) {
    const batch = last.value!
    last = await batches.next()
    if (last.done) return send({ type: "done", batch, rss: process.memoryUsage.rss() })
    await ask({ type: "batch", batch })
  }
}

const serve = async (): Promise<void> => {
  for (;;) {
    const message = await take()
    if (message.type !== "read") continue
    startFile()
    await read(message.kind, message.limits).catch((cause: unknown) => send(failureOf(cause)))
  }
}

standBack()
startFile()
startWatch(process.argv.slice(2).map(Number))
process.on("message", (message: ToProcess) => onMessage?.(message))
process.on("disconnect", () => process.exit())
// Ctrl-C reaches every process of a terminal; the server decides
process.on("SIGINT", () => {})
// a promise of a parser that nobody awaits; what is awaited fails the file
process.on("unhandledRejection", () => {})
process.on("uncaughtException", (cause) => send(failureOf(cause)))
void serve()
