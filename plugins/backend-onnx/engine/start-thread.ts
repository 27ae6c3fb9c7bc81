import { Worker } from "node:worker_threads"
import type { EngineSpec } from "./protocol.ts"

const entry = import.meta.url.endsWith(".ts") ? "./thread-from-source.mjs" : "./engine-thread.js"

// no inherited flags: a test runner's or a loader's are not meant for this thread
export const startThread = (spec: EngineSpec): Worker => new Worker(new URL(entry, import.meta.url), { workerData: spec, execArgv: [] })
