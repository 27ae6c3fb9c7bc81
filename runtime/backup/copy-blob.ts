import { createHash } from "node:crypto"
import { Effect, Stream } from "effect"
import type { BlobInfo, Storage, StorageError } from "../../core/ports/storage.ts"
import type { CopiedBlob, CopyJournal } from "./copy-journal.ts"

/** Why one blob was not copied; the others go on. */
export class BlobRefused extends Error {
  readonly _tag = "BlobRefused"
}

/** `same`: it was there. `removed`: it went meanwhile. `replaced`: it changed meanwhile. */
export type Outcome = "copied" | "same" | "removed" | "replaced"

export interface CopySides {
  readonly from: Storage
  readonly to: Storage
  readonly journal: CopyJournal
  /** Replaces other blobs under the same keys. */
  readonly overwrite: boolean
  /** Compares every blob again. */
  readonly verify: boolean
}

interface Content {
  readonly bytes: number
  readonly sha256: string
}

const contentOf = (storage: Storage, key: string): Effect.Effect<Content, StorageError> =>
  Effect.suspend(() => {
    const hash = createHash("sha256")
    let bytes = 0
    return Effect.map(
      Stream.runForEach(storage.get(key), (chunk) =>
        Effect.sync(() => {
          hash.update(chunk)
          bytes += chunk.byteLength
        }),
      ),
      () => ({ bytes, sha256: hash.digest("hex") }),
    )
  })

const isEqual = (a: Content, b: Content) => a.bytes === b.bytes && a.sha256 === b.sha256

/** A blob whose etag is as it was, but whose bytes are not, is damaged. */
const mustBeUnchanged = (info: BlobInfo, content: Content, known: CopiedBlob | undefined) => {
  const { key, bytes, etag } = info
  if (content.bytes !== bytes)
    return Effect.fail(
      new BlobRefused(`${key}: the source says ${bytes} bytes and sends ${content.bytes}.`),
    )
  return known?.from === etag && known.sha256 !== content.sha256
    ? Effect.fail(
        new BlobRefused(
          `${key}: its bytes in the source have changed since they were copied, and its etag has not: it is damaged there. The copy was left as it is.`,
        ),
      )
    : Effect.void
}

/** Whether the blob is as it was listed. */
const seenAgain = ({ from }: CopySides, { key, etag }: BlobInfo) =>
  Effect.map(from.stat(key), (now): Outcome | undefined =>
    now.etag === etag ? undefined : "replaced",
  ).pipe(Effect.catchTag("BlobMissing", () => Effect.succeed<Outcome | undefined>("removed")))

/** The put fails, and so leaves nothing, unless the bytes are those that were listed. */
const put = ({ from, to }: CopySides, info: BlobInfo, known: CopiedBlob | undefined) =>
  Effect.suspend(() => {
    const { key } = info
    const hash = createHash("sha256")
    let sent: Content = { bytes: 0, sha256: "" }
    const body = Stream.tap(from.get(key), (chunk) =>
      Effect.sync(() => {
        hash.update(chunk)
        sent = { bytes: sent.bytes + chunk.byteLength, sha256: "" }
      }),
    )
    const check = Effect.suspend(() => {
      sent = { ...sent, sha256: hash.digest("hex") }
      return mustBeUnchanged(info, sent, known)
    })
    return Effect.map(
      to.put(key, Stream.concat(body, Stream.fromEffectDrain(check)), Number.MAX_SAFE_INTEGER),
      ({ etag }) => ({ ...sent, etag }),
    )
  })

/** Copies a blob, reads the copy back, and notes it. */
const copy = (sides: CopySides, info: BlobInfo, known: CopiedBlob | undefined) =>
  Effect.gen(function* () {
    const { key } = info
    const { etag, ...sent } = yield* put(sides, info, known)
    const written = yield* contentOf(sides.to, key)
    if (!isEqual(sent, written)) {
      yield* sides.to.remove(key)
      return yield* Effect.fail(
        new BlobRefused(
          `${key}: ${sent.bytes} bytes were sent and ${written.bytes} other ones came back. The copy was removed.`,
        ),
      )
    }
    yield* sides.journal.record({ key, from: info.etag, to: etag, ...sent })
    return "copied" as Outcome
  })

/** Compares with the blob that is there, and copies where that is right. */
const compare = (sides: CopySides, info: BlobInfo, there: BlobInfo) =>
  Effect.gen(function* () {
    const { key, etag } = info
    const known = sides.journal.find(key)
    const isKnown = known?.from === etag && known.to === there.etag
    if (isKnown && !sides.verify) return "same" as Outcome
    if (info.bytes === there.bytes) {
      const [source, target] = yield* Effect.all(
        [contentOf(sides.from, key), contentOf(sides.to, key)],
        { concurrency: 2 },
      )
      yield* mustBeUnchanged(info, source, known)
      if (isEqual(source, target)) {
        if (!isKnown) yield* sides.journal.record({ key, from: etag, to: there.etag, ...source })
        return "same" as Outcome
      }
    }
    // what an earlier pass wrote may be replaced
    if (known?.to === there.etag || sides.overwrite) return yield* copy(sides, info, known)
    return yield* Effect.fail(
      new BlobRefused(
        `${key}: the target has another blob under this key. Fix: name an empty target, or replace such blobs with --overwrite.`,
      ),
    )
  })

/** Brings one blob to the target. `there` is what the target has under its key. */
export const copyBlob = (
  sides: CopySides,
  info: BlobInfo,
  there: BlobInfo | undefined,
): Effect.Effect<Outcome, StorageError | BlobRefused | Error> => {
  const work: Effect.Effect<Outcome, StorageError | BlobRefused | Error> =
    there === undefined
      ? copy(sides, info, sides.journal.find(info.key))
      : compare(sides, info, there)
  return work.pipe(
    Effect.catch((error) =>
      // who changes a blob while it is read gets another pass, not an error
      "_tag" in error && (error._tag === "BlobMissing" || error._tag === "BlobRefused")
        ? Effect.flatMap(seenAgain(sides, info), (outcome) =>
            outcome === undefined ? Effect.fail(error) : Effect.succeed(outcome),
          )
        : Effect.fail(error),
    ),
  )
}
