import { Worker } from "node:worker_threads"
import { Effect, type Scope } from "effect"
import { type Log, PortError } from "../../../../core/index.ts"
import type { Device } from "../../../../core/ports/execution-provider.ts"
import type { ScoredChunk } from "./best.ts"
import { DeviceRelay } from "./device-relay.ts"
import type {
  FromScan,
  ScanAnswer,
  ScanMessage,
  ScanThreadData,
  SearchMessage,
  ToScan,
} from "./protocol.ts"

/** The most searches that wait for the thread. */
const maxWaiting = 200

const failed = (message: string, why?: "busy") =>
  new PortError({ port: "vectors", message, ...(why && { why }) })

type Hits = Effect.Effect<readonly ScoredChunk[], PortError>

/** One life of the thread: what was sent to an earlier one is lost. */
export class ScanLink {
  isAlive = true
  private readonly worker: Worker
  private readonly waiting = new Map<number, (hits: Hits) => void>()
  private lastId = 0

  constructor(worker: Worker, log: Log, device?: Device) {
    this.worker = worker
    const relay =
      device && new DeviceRelay(device, log, (news) => this.post({ type: "device", news }))
    worker.on("message", (message: FromScan) => {
      if ("toDevice" in message) relay?.send(message.toDevice)
      else this.answer(message)
    })
    worker.on("error", (cause) =>
      log.error("retrieval.scan_failed", "the thread that searches vectors failed", {
        reason: cause instanceof Error ? cause.message : String(cause),
      }),
    )
    worker.on("exit", () => {
      this.isAlive = false
      relay?.close()
      for (const id of [...this.waiting.keys()])
        this.settle(id, Effect.fail(failed("the thread that searches vectors ended")))
    })
  }

  private answer({ id, hits }: ScanAnswer): void {
    const given = () => failed("the vectors were given up meanwhile", "busy")
    this.settle(id, hits ? Effect.succeed(hits) : Effect.fail(given()))
  }

  private settle(id: number, hits: Hits): void {
    this.waiting.get(id)?.(hits)
    this.waiting.delete(id)
  }

  /** Sends a message; the thread takes over the buffer of its rows. */
  post(message: ToScan): void {
    const rows = "packed" in message ? message.packed.rows.buffer : undefined
    this.worker.postMessage(message, rows instanceof ArrayBuffer ? [rows] : [])
  }

  /** Searches an index, or rows that are not kept. Interrupted, the result is dropped. */
  ask(message: Omit<SearchMessage, "id"> | Omit<ScanMessage, "id">): Hits {
    return Effect.callback<readonly ScoredChunk[], PortError>((resume) => {
      if (!this.isAlive) return resume(Effect.fail(failed("the thread has ended")))
      if (this.waiting.size >= maxWaiting)
        return resume(Effect.fail(failed(`${maxWaiting} searches are waiting already`, "busy")))
      const id = ++this.lastId
      this.waiting.set(id, resume)
      this.post({ ...message, id })
      // the thread has the search in its queue, so it counts until its answer
      return Effect.sync(() => {
        if (this.waiting.has(id)) this.waiting.set(id, () => {})
      })
    })
  }
}

const entry = import.meta.url.endsWith(".ts") ? "./thread-from-source.mjs" : "./thread.js"

/**
 * The thread that scans vectors, so that no search holds up other requests. It starts when it is
 * first needed, and again after it failed. Large indices are searched on the device, if there is
 * one. Returns its current life.
 */
export const openScanHost = (
  log: Log,
  data: ScanThreadData,
  device?: Device,
): Effect.Effect<() => ScanLink, never, Scope.Scope> => {
  let worker: Worker | undefined
  let link: ScanLink | undefined
  const current = () => {
    if (link?.isAlive) return link
    // no inherited flags: those of a test runner or a loader are not meant for this thread
    worker = new Worker(new URL(entry, import.meta.url), { workerData: data, execArgv: [] })
    link = new ScanLink(worker, log, device)
    return link
  }
  return Effect.acquireRelease(Effect.succeed(current), () =>
    Effect.promise(async () => void (await worker?.terminate())),
  )
}
