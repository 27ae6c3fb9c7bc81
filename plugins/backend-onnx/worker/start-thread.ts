import { Worker } from "node:worker_threads"
import type { EngineChannel } from "../../../core/ports/execution-provider.ts"
import { newGuard, waitForNative } from "../onnx/native-guard.ts"
import type { EngineSpec, ThreadData } from "./protocol.ts"

/** The module that serves an engine, in a thread or in a device's process. */
export const engineEntry = new URL(
  import.meta.url.endsWith(".ts") ? "./entry-from-source.mjs" : "./entry.js",
  import.meta.url,
)

// longer than any single call into ONNX Runtime takes
const nativeMs = 5_000

/** The guards of the threads that run. */
const guards = new Set<Int32Array>()
const beforeExit = (): void => {
  for (const guard of guards) waitForNative(guard, nativeMs)
}

// one listener for all threads: Node warns of a leak when a process has more than ten
const guardUntilExit = (worker: Worker, guard: Int32Array): void => {
  if (guards.size === 0) process.on("exit", beforeExit)
  guards.add(guard)
  worker.once("exit", () => {
    guards.delete(guard)
    if (guards.size === 0) process.off("exit", beforeExit)
  })
}

export type StartEngine = (spec: EngineSpec) => EngineChannel

/**
 * Starts an engine's thread. Never terminate it, as it may be in a call into ONNX Runtime: post a
 * `close` message.
 */
/** Two semi-spaces of 4 MB, where V8's own are of 16: answers are written as fast (bench/README.md). */
const resourceLimits = { maxYoungGenerationSizeMb: 12 }

export const startThread = (spec: EngineSpec): Worker => {
  const data: ThreadData = { spec, guard: newGuard() }
  // no inherited flags: those of a test runner or a loader are not meant for this thread
  const worker = new Worker(engineEntry, { workerData: data, execArgv: [], resourceLimits })
  guardUntilExit(worker, data.guard)
  return worker
}
