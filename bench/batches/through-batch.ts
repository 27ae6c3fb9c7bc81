import { Effect, Stream } from "effect"
import type { DeploymentInProcess } from "../deployment/in-process.ts"
import { type TextKind, textOf } from "./deployment.ts"

const line = (kind: TextKind, n: number): string =>
  `${JSON.stringify({ custom_id: `line-${n}`, method: "POST", url: "/v1/embeddings", body: { model: "svc-embed", input: textOf(kind, n), encoding_format: "base64" } })}\n`

interface ShownBatch {
  readonly id: string
  readonly status: string
  readonly request_counts: {
    readonly total: number
    readonly completed: number
    readonly failed: number
  }
}

/** Calls endpoints as a client does, without HTTP. */
const makeAsk =
  ({ caller, endpoint, path }: DeploymentInProcess) =>
  <Json>(id: string, body: unknown, params: Readonly<Record<string, string>> = {}): Promise<Json> =>
    Effect.runPromise(
      Effect.scoped(
        Effect.map(
          path.run(endpoint(id), {
            caller,
            body,
            params,
            requestId: "req_bench",
            priority: "realtime",
            priceFactor: 1,
          }),
          ({ reply }) => ("json" in reply ? reply.json : undefined) as Json,
        ),
      ),
    )

/** The file as a stream, as from HTTP: never whole in memory. */
const upload = (kind: TextKind, lines: number) => {
  const numbers = Array.from({ length: Math.ceil(lines / 100) }, (_, n) => n * 100)
  const bytes = Stream.map(Stream.fromIterable(numbers), (from) =>
    Buffer.from(
      Array.from({ length: Math.min(100, lines - from) }, (_, n) => line(kind, from + n)).join(""),
    ),
  )
  const parts = [
    { kind: "field" as const, name: "purpose", value: "batch" },
    {
      kind: "file" as const,
      name: "file",
      filename: "lines.jsonl",
      mediaType: "application/jsonl",
      bytes,
    },
  ]
  return { parts: Stream.fromIterable(parts), contentLength: undefined }
}

export interface BatchFigures {
  /** Lines per second from the first line to the end, with result files and event. */
  readonly perSecond: number
  /** From creation to the first line: the file is read and checked. */
  readonly preflightMs: number
}

// polling costs time that is measured, so it is frequent only near the end
const waitMs = (begun: boolean, left: number): number => (begun && left > 400 ? 1_000 : 50)

/**
 * Uploads the file, creates the batch and waits. `onProgress` is called with the number of
 * completed lines, every second at first, more often near the end.
 */
export const runThroughBatch = async (
  deployment: DeploymentInProcess,
  kind: TextKind,
  lines: number,
  onProgress: (done: number) => void = () => {},
): Promise<BatchFigures> => {
  const ask = makeAsk(deployment)
  const { id: input_file_id } = await ask<{ id: string }>("files.create", upload(kind, lines))
  const createdMs = performance.now()
  const { id } = await ask<ShownBatch>("batches.create", {
    input_file_id,
    endpoint: "/v1/embeddings",
    completion_window: "24h",
  })
  let begunMs: number | undefined
  for (;;) {
    const batch = await ask<ShownBatch>("batches.retrieve", undefined, { id })
    const nowMs = performance.now()
    if (batch.status !== "validating") begunMs ??= nowMs
    onProgress(batch.request_counts.completed)
    if (batch.status === "completed" && batch.request_counts.completed === lines)
      return {
        perSecond: (lines * 1000) / (nowMs - (begunMs ?? createdMs)),
        preflightMs: (begunMs ?? nowMs) - createdMs,
      }
    if (!["validating", "in_progress"].includes(batch.status))
      throw new Error(`the batch ended as ${JSON.stringify(batch)}`)
    await new Promise((resolve) =>
      setTimeout(resolve, waitMs(begunMs !== undefined, lines - batch.request_counts.completed)),
    )
  }
}
