import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { parentPort, workerData } from "node:worker_threads"
import { addon } from "../kernels/addon.ts"
import { type DeviceSessions, guardSessions, useDevice } from "../onnx/onnx-session.ts"
import { GrammarFailed } from "../sampling/token-mask.ts"
import { releaseWhenIdle } from "./idle-release.ts"
import type { EngineOpener, OpenEngine } from "./open-engine.ts"
import { Outbox } from "./outbox.ts"
import type { EngineSpec, FromThread, StageTime, Submit, ThreadData, ToThread } from "./protocol.ts"
import { Scheduler } from "./scheduler.ts"

/** The engine's end of its channel. */
export interface EnginePort {
  postMessage(messages: unknown): void
  // biome-ignore lint/suspicious/noExplicitAny: as of MessagePort
  on(event: string, listener: (message: any) => void): unknown
  close(): void
}

const textOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Returns what malloc keeps to the system; stops the thread for some 5 ms. */
const trimMemory = (): void => addon?.trimMemory()

/** The same with what V8 keeps beside the model; stops the thread for some 20 ms. */
const releaseMemory = (): void => {
  // flags are those of the process: another thread may withdraw this one in between
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("globalThis.gc") as (() => void) | undefined
  collect?.()
  trimMemory()
}

/** Serves jobs until a `close` message. */
const serve = <Job, Event extends { readonly type: string }, Info, Started>(
  port: EnginePort,
  engine: OpenEngine<Job, Event, Info, Started>,
  slots: number,
): void => {
  const outbox = new Outbox<FromThread<Event | StageTime, Info>>((all) => port.postMessage(all))
  const releaseLater = releaseWhenIdle(trimMemory, releaseMemory)
  const held = (size: number) => {
    releaseLater(size)
    const prefix = engine.prefixStats?.()
    if (prefix && engine.capacity !== undefined)
      outbox.send({ type: "stats", stats: { kvCacheUsage: size / engine.capacity, ...prefix } })
  }
  const scheduler = new Scheduler<Started>(
    engine.runner,
    {
      slots,
      capacity: engine.capacity ?? Number.POSITIVE_INFINITY,
      nowMs: () => performance.now(),
    },
    {
      done: (id) => outbox.send({ type: "done", id }),
      busy: (id) => outbox.send({ type: "busy", id }),
      held,
      failed: (id, cause) =>
        outbox.send({
          type: "failed",
          id,
          message: textOf(cause),
          ...(cause instanceof GrammarFailed && { why: cause.why }),
        }),
    },
  )
  const submit = ({ id, account, priority, waitMs, job }: Submit<Job>) => {
    const queuedMs = performance.now()
    const emit = (event: Event | StageTime) =>
      event.type === "time"
        ? outbox.append({ type: "event", id, event })
        : outbox.send({ type: "event", id, event })
    const start = () => {
      emit({ type: "time", stage: "queue", durationMs: performance.now() - queuedMs })
      return engine.start(job, emit)
    }
    scheduler.submit({ id, account, priority, waitMs, size: engine.sizeOf?.(job) ?? 1, start })
  }
  const close = async () => {
    await scheduler.stop()
    await engine.close()
    port.close()
  }
  port.on("message", (message: ToThread<Job>) => {
    if (message.type === "submit") submit(message)
    else if (message.type === "cancel") scheduler.cancel(message.id)
    else void close()
  })
  outbox.send({ type: "ready", info: engine.info })
  held(0)
}

type ServeKind = (
  port: EnginePort,
  spec: EngineSpec,
  progress: (detail: string) => void,
) => Promise<void>

// queued texts and images take no memory of the model, so all requests run at once and those of
// similar length are batched
const all = () => Number.POSITIVE_INFINITY

/** A thread loads the modules of its own kind alone: those of all take twice as long. */
const serving =
  <Job, Event extends { readonly type: string }, Info, Started>(
    load: () => Promise<EngineOpener<Job, Event, Info, Started>>,
    slotsOf: (spec: EngineSpec) => number = ({ slots }) => slots,
  ): ServeKind =>
  async (port, spec, progress) => {
    const open = await load()
    serve(port, await open(spec, progress), slotsOf(spec))
  }

const kinds: Readonly<Record<EngineSpec["kind"], ServeKind>> = {
  encoder: serving(
    async () => (await import("../encoding/open-encoder-engine.ts")).openEncoderEngine,
    all,
  ),
  vision: serving(
    async () => (await import("../vision/open-vision-engine.ts")).openVisionEngine,
    all,
  ),
  sight: serving(async () => (await import("../vision/open-sight-engine.ts")).openSightEngine, all),
  image: serving(
    async () => (await import("../diffusion/engine/open-image-engine.ts")).openImageEngine,
  ),
  hearing: serving(
    async () => (await import("../hearing/open-hearing-engine.ts")).openHearingEngine,
  ),
  listening: serving(
    async () => (await import("../hearing/open-listening-engine.ts")).openListeningEngine,
  ),
  decoder: serving(
    async () => (await import("../generation/open-decoder-engine.ts")).openDecoderEngine,
  ),
}

const openAndServe = async (port: EnginePort, spec: EngineSpec): Promise<void> => {
  const post = (message: FromThread<never, never>) => port.postMessage([message])
  try {
    await kinds[spec.kind](port, spec, (detail) => post({ type: "progress", detail }))
  } catch (cause) {
    post({ type: "unusable", message: textOf(cause) })
    port.close()
  }
}

/** Called in a device's process, once for each engine (core/ports/execution-provider.ts). */
export const startOnDevice = (
  port: EnginePort,
  spec: EngineSpec,
  sessions: DeviceSessions,
): Promise<void> => {
  useDevice(sessions)
  return openAndServe(port, spec)
}

if (parentPort) {
  const { spec, guard } = workerData as ThreadData
  guardSessions(guard)
  void openAndServe(parentPort, spec)
}
