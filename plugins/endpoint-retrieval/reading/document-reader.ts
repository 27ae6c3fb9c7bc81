import { Effect, type Scope, Stream } from "effect"
import { type Log, PortError } from "../../../core/index.ts"
import type { Kind, ReadBatch } from "../extract/kind.ts"
import { IngestFailure } from "./ingest-failure.ts"
import { makeProcessPool } from "./process-pool.ts"
import type { FromProcess, ReadLimits, ToProcess } from "./protocol.ts"
import type { ProcessLimits, ReaderProcess } from "./reader-process.ts"

export { IngestFailure }

export interface DocumentReader {
  /**
   * The chunks of a file, in batches of some dozens, the last one with all counts. The next batch
   * is read when the last was taken, so memory is bounded whatever the file is. A stream without
   * chunks never succeeds: it fails as `empty` or `no_text`.
   */
  read(
    kind: Kind,
    bytes: Stream.Stream<Uint8Array, PortError>,
  ): Stream.Stream<ReadBatch, IngestFailure | PortError>
}

export interface ReaderOptions extends ProcessLimits {
  readonly log: Log
  /** How many files are read at once, each in a process of its own. */
  readonly processes: number
  readonly limits: ReadLimits
}

type Fed = Extract<ToProcess, { readonly type: "bytes" | "bytes-end" }>

/** Returns what lets the process work until it has a word that is not about bytes. */
const conversation = (process: ReaderProcess, nextBytes: Effect.Effect<Fed, PortError>) =>
  Effect.fnUntraced(function* (message: ToProcess) {
    let answer = yield* process.ask(message)
    while (answer.type === "more-bytes") answer = yield* process.ask(yield* nextBytes)
    return answer
  })

/** The bytes as messages, one for each pull. */
const feed = (bytes: Stream.Stream<Uint8Array, PortError>) =>
  bytes.pipe(
    Stream.mapArray((some): readonly [Fed] => [{ type: "bytes", bytes: some }]),
    Stream.concat(Stream.succeed<Fed>({ type: "bytes-end" })),
    Stream.toPull,
    Effect.map((pull) =>
      pull.pipe(
        Effect.map(([fed]) => fed),
        Effect.catch((cause) =>
          cause instanceof PortError ? Effect.fail(cause) : Effect.die("bytes after their end"),
        ),
      ),
    ),
  )

export const makeDocumentReader = (
  options: ReaderOptions,
): Effect.Effect<DocumentReader, never, Scope.Scope> =>
  Effect.map(makeProcessPool(options.processes, options), (lend) => {
    const { log, limits } = options
    /** A batch, and what lets the process go on if there is more. */
    const batchOf = (kind: Kind, answer: FromProcess) => {
      if (answer.type === "batch")
        return Effect.succeed([answer.batch, { type: "next" } as ToProcess | undefined] as const)
      if (answer.type === "done") return Effect.succeed([answer.batch, undefined] as const)
      if (answer.type === "failed") return Effect.fail(new IngestFailure(answer))
      if (answer.type === "crashed")
        log.warn("retrieval.parser_failed", "a parser failed in a way that it should not", {
          kind,
          reason: answer.message,
        })
      return Effect.fail(unreadable)
    }
    const read = (kind: Kind, bytes: Stream.Stream<Uint8Array, PortError>) =>
      Effect.gen(function* () {
        const ask = conversation(yield* lend, yield* feed(bytes))
        const first: ToProcess | undefined = { type: "read", kind, limits }
        return Stream.unfold(first as ToProcess | undefined, (message) =>
          message === undefined
            ? Effect.succeed(undefined)
            : Effect.flatMap(ask(message), (answer) => batchOf(kind, answer)),
        )
      })
    return { read: (kind, bytes) => Stream.unwrap(read(kind, bytes)) }
  })

const unreadable = new IngestFailure({
  code: "broken",
  message: "The file can't be read: it is damaged, or made in an unusual way.",
})
