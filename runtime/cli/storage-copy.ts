import { createHash } from "node:crypto"
import { join, resolve as resolvePath } from "node:path"
import { Effect } from "effect"
import type { Storage } from "../../core/ports/storage.ts"
import { systemClock } from "../../core/services/clock.ts"
import { resolve, resolveOptional, type Token, Tokens } from "../../core/tokens.ts"
import { openJournal } from "../backup/copy-journal.ts"
import { type CopySum, copyPass, measure } from "../backup/copy-storage.ts"
import type { AssembledDeployment } from "../boot/assemble.ts"
import { suggestPlugins } from "../boot/suggest-plugins.ts"
import { countOf, makeProgressLine } from "./fsck-progress.ts"
import { startWanted, withDeployments } from "./with-deployment.ts"

export interface StorageCopyOptions {
  readonly parallel: number
  readonly verify: boolean
  readonly overwrite: boolean
  readonly journal?: string
  readonly json: boolean
}

const openStorage = (deployment: AssembledDeployment, file: string) =>
  Effect.gen(function* () {
    yield* startWanted(deployment, [Tokens.storage as Token<unknown>])
    const storage = resolveOptional(deployment.container, Tokens.storage)
    if (storage !== undefined) return storage
    const fix = yield* Effect.promise(() => suggestPlugins(Tokens.storage as Token<unknown>))
    return yield* Effect.fail(new Error(`No plugin of ${file} keeps blobs. Fix: ${fix}`))
  })

/** One for each pair of files, so that both directions have theirs. */
const journalFile = ({ container }: AssembledDeployment, files: readonly string[]): string => {
  const { dataDir } = resolve(container, Tokens.deployment)
  const pair = createHash("sha256").update(files.map((file) => resolvePath(file)).join("\n"))
  return join(dataDir, "storage-copy", `${pair.digest("hex").slice(0, 12)}.jsonl`)
}

const mustHaveBlobs = (from: Storage, file: string) =>
  Effect.flatMap(measure(from), (found) =>
    found.count > 0
      ? Effect.succeed(found)
      : Effect.fail(
          new Error(
            `The storage of ${file} has no blobs, so there is nothing to copy. Fix: correct its folder (dataDir, RAKIT_DATA) or bucket and prefix.`,
          ),
        ),
  )

/** What was said of a storage that is full or gone, and that no work is lost. */
const explained = (error: { readonly _tag?: string; readonly message?: string }): Error => {
  const why =
    error._tag === "StorageFull"
      ? "The target is full."
      : error.message || error._tag || "It failed."
  return new Error(
    `${why}\nThe copy did not end. Run the same command again: it goes on where it was.`,
  )
}

/** A second pass finds what came while the first one ran, which may have taken hours. */
const passes = (
  pass: Effect.Effect<CopySum, { readonly _tag?: string; readonly message: string }>,
) =>
  Effect.gen(function* () {
    const first = yield* pass
    if (first.outcomes.copied === 0 || first.failures.length > 0) return first
    const second = yield* pass
    return {
      ...second,
      copiedBytes: first.copiedBytes + second.copiedBytes,
      outcomes: {
        ...second.outcomes,
        copied: first.outcomes.copied + second.outcomes.copied,
        same: first.outcomes.same,
      },
    }
  }).pipe(Effect.mapError(explained))

const textOf = (sum: CopySum, from: string, to: string): string => {
  const { seen, bytes, copiedBytes, extra, failures, outcomes } = sum
  const meanwhile = outcomes.removed + outcomes.replaced
  return [
    `Copied ${countOf(outcomes.copied)} blobs (${countOf(copiedBytes)} bytes) from ${from} to ${to}; ${countOf(outcomes.same)} were there.`,
    ...(failures.length === 0
      ? [
          `All ${countOf(seen)} blobs (${countOf(bytes)} bytes) have the same length and digest there.`,
        ]
      : [...failures, `${countOf(failures.length)} of ${countOf(seen)} blobs were not copied.`]),
    ...(meanwhile > 0
      ? [`${countOf(meanwhile)} were removed or replaced meanwhile: a server is at work.`]
      : []),
    ...(extra > 0
      ? [`The target has ${countOf(extra)} blobs that the source has not; they were left.`]
      : []),
    "What a server writes from now on is not there: stop it, run this again, then start it with the other config file.",
    "",
  ].join("\n")
}

/** Copies blobs between the storages of two config files. Exits with 1 when one is left out. */
export const copyStorage = async (
  from: string,
  to: string,
  options: StorageCopyOptions,
): Promise<void> => {
  const line = makeProgressLine(process.stderr, systemClock)
  const sum = await withDeployments([from, to], ([source, target]) =>
    Effect.gen(function* () {
      const sides = {
        from: yield* openStorage(source!, from),
        to: yield* openStorage(target!, to),
        journal: yield* openJournal(options.journal ?? journalFile(source!, [from, to])),
        overwrite: options.overwrite,
      }
      const { count, bytes } = yield* mustHaveBlobs(sides.from, from)
      let verify = options.verify
      const pass = Effect.suspend(() => {
        const thisTime = { ...sides, verify }
        // the second pass has seen them
        verify = false
        return copyPass(thisTime, options.parallel, (progress) =>
          line.report(
            () =>
              `${countOf(progress.seen)} of ${countOf(count)} blobs, ${countOf(progress.seenBytes)} of ${countOf(bytes)} bytes; ${countOf(progress.copied)} copied`,
          ),
        )
      })
      return yield* passes(pass)
    }),
  )
  line.clear()
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ object: "rakit.storage_copy", ...sum }, undefined, 1)}\n`
      : textOf(sum, from, to),
  )
  if (sum.failures.length > 0) process.exitCode = 1
}
