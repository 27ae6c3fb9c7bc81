import { randomUUID } from "node:crypto"
import { Effect, Stream } from "effect"
import type { BlobInfo, Storage, StorageError } from "../../core/ports/storage.ts"
import { BlobRefused, type CopySides, copyBlob, type Outcome } from "./copy-blob.ts"

export interface CopySum {
  readonly seen: number
  /** The size of all blobs that were seen. */
  readonly bytes: number
  readonly outcomes: Readonly<Record<Outcome, number>>
  readonly copiedBytes: number
  /** Blobs that only the target has. */
  readonly extra: number
  /** The first `maxFailures`, as sentences. */
  readonly failures: readonly string[]
}

export interface CopyProgress {
  readonly seen: number
  readonly seenBytes: number
  readonly copied: number
}

/** After as many blobs that fail, the rest is not tried. */
export const maxFailures = 20

/** Sorts before other keys, so that it is met first where one storage lies inside the other. */
const probeKey = "-rakit-copy-probe"

const textOf = (storage: Storage, key: string) =>
  Effect.map(Stream.runCollect(storage.get(key, { from: 0, to: 99 })), (chunks) =>
    Buffer.concat(chunks).toString(),
  ).pipe(Effect.catchTag("BlobMissing", () => Effect.succeed("")))

/** Runs `work` with a blob in the target whose text is known; also shows that it can be written. */
const withProbe = <A, E>(to: Storage, work: (text: string) => Effect.Effect<A, E>) =>
  Effect.suspend(() => {
    const text = randomUUID()
    return Effect.acquireUseRelease(
      to.put(probeKey, Stream.make(Buffer.from(text)), 100),
      () => work(text),
      () => Effect.ignore(to.remove(probeKey)),
    )
  })

/** Walks through a list, in the order of its keys, beside another one. */
const makeCursor = (list: Stream.Stream<BlobInfo, StorageError>) =>
  Effect.gen(function* () {
    const items = Stream.toAsyncIterable(list)[Symbol.asyncIterator]()
    yield* Effect.addFinalizer(() => Effect.promise(async () => void (await items.return?.())))
    let extra = 0
    const next = Effect.tryPromise({
      try: async () => {
        const { done, value } = await items.next()
        return done ? undefined : (value as BlobInfo)
      },
      catch: (cause) => cause as StorageError,
    })
    let head = yield* next
    const skip = Effect.gen(function* () {
      if (head?.key !== probeKey) extra += 1
      head = yield* next
    })
    return {
      /** The blob of this key; those before it are extra. */
      find: (key: string) =>
        Effect.gen(function* () {
          while (head !== undefined && head.key < key) yield* skip
          if (head?.key !== key) return undefined
          const found = head
          head = yield* next
          return found
        }),
      rest: Effect.gen(function* () {
        while (head !== undefined) yield* skip
        return extra
      }),
    }
  })

const isSame = (where: string) =>
  new Error(
    `${where}, so there is nothing to copy. Fix: name two storages that share no folder, bucket or prefix.`,
  )

const mustBeTwo = ({ from }: CopySides, text: string) =>
  Effect.flatMap(textOf(from, probeKey), (found) =>
    found === text ? Effect.fail(isSame("Both config files name the same storage")) : Effect.void,
  )

/** Blobs of the target would be copied into it again. */
const mustBeOutside = ({ from }: CopySides, key: string, text: string) =>
  key.endsWith(`/${probeKey}`)
    ? Effect.flatMap(textOf(from, key), (found) =>
        found === text ? Effect.fail(isSame("The target lies inside the source")) : Effect.void,
      )
    : Effect.void

/** Whether other blobs would fail, too. */
const endsAll = (error: StorageError | Error): boolean =>
  !("_tag" in error) ||
  error._tag === "StorageFull" ||
  (error._tag === "PortError" && error.why !== undefined)

const sentenceOf = (key: string, error: StorageError | Error): string => {
  if (error instanceof BlobRefused) return error.message
  return `${key}: ${error.message || ("_tag" in error ? String(error._tag) : "it failed")}`
}

const makeSum = (report: (progress: CopyProgress) => void) => {
  const outcomes: Record<Outcome, number> = { copied: 0, same: 0, removed: 0, replaced: 0 }
  const failures: string[] = []
  let seen = 0
  let bytes = 0
  let copiedBytes = 0
  const counted = (info: BlobInfo) => {
    seen += 1
    bytes += info.bytes
    report({ seen, seenBytes: bytes, copied: outcomes.copied })
  }
  return {
    failures,
    done: (info: BlobInfo, outcome: Outcome) => {
      outcomes[outcome] += 1
      if (outcome === "copied") copiedBytes += info.bytes
      counted(info)
    },
    failed: (info: BlobInfo, why: string) => {
      failures.push(why)
      counted(info)
    },
    of: (extra: number): CopySum => ({ seen, bytes, outcomes, copiedBytes, extra, failures }),
  }
}

/**
 * Copies what the target lacks, in one walk through both lists, and compares what it has. Fails
 * where going on makes no sense: a full or unreachable storage.
 */
export const copyPass = (
  sides: CopySides,
  parallel: number,
  report: (progress: CopyProgress) => void,
): Effect.Effect<CopySum, StorageError | Error> =>
  withProbe(sides.to, (text) =>
    Effect.scoped(
      Effect.gen(function* () {
        yield* mustBeTwo(sides, text)
        const target = yield* makeCursor(sides.to.list(""))
        const sum = makeSum(report)
        const one = ({ info, there }: { info: BlobInfo; there: BlobInfo | undefined }) =>
          copyBlob(sides, info, there).pipe(
            Effect.map((outcome) => sum.done(info, outcome)),
            Effect.catch((error) => {
              if (endsAll(error)) return Effect.fail(error)
              sum.failed(info, sentenceOf(info.key, error))
              return sum.failures.length < maxFailures ? Effect.void : Effect.fail(stopped(sum))
            }),
          )
        yield* sides.from.list("").pipe(
          Stream.filter(({ key }) => key !== probeKey),
          Stream.mapEffect((info) =>
            Effect.gen(function* () {
              yield* mustBeOutside(sides, info.key, text)
              return { info, there: yield* target.find(info.key) }
            }),
          ),
          Stream.mapEffect(one, { concurrency: parallel, unordered: true }),
          Stream.runDrain,
        )
        return sum.of(yield* target.rest)
      }),
    ),
  )

const stopped = ({ failures }: { readonly failures: readonly string[] }) =>
  new Error(`${failures.join("\n")}\nStopped after ${failures.length} blobs that failed.`)

/** Counts what there is to copy. */
export const measure = (
  from: Storage,
): Effect.Effect<{ readonly count: number; readonly bytes: number }, StorageError> =>
  Stream.runFold(
    Stream.filter(from.list(""), ({ key }) => key !== probeKey),
    () => ({ count: 0, bytes: 0 }),
    (sum, { bytes }) => ({ count: sum.count + 1, bytes: sum.bytes + bytes }),
  )
