import { writeFileSync } from "node:fs"
import { Effect } from "effect"
import { stringify } from "yaml"
import type { ModelEntry, ModelSource } from "../../core/services/model-entry.ts"
import { resolve, Tokens } from "../../core/tokens.ts"
import type { AssembledDeployment } from "../boot/assemble.ts"
import { makePullProgress } from "../progress.ts"
import { pullVerified } from "../services/model-files/verified-pull.ts"
import { formatTable } from "./table.ts"
import { withDeployment } from "./with-deployment.ts"

interface Options {
  readonly config: string
}

const print = ({ config }: AssembledDeployment, text: string): void =>
  void process.stdout.write(config.mask.text(text))

const chosen = (deployment: AssembledDeployment, ids: readonly string[]) =>
  Effect.suspend(() => {
    const { entries } = resolve(deployment.container, Tokens.catalogue)
    const unknown = ids.filter((id) => !entries.some((entry) => entry.id === id))
    if (unknown.length > 0)
      return Effect.fail(
        new Error(
          `There is no model ${unknown.map((id) => `'${id}'`).join(", ")} in this config. Models: ${entries.map((e) => e.id).join(", ")}.`,
        ),
      )
    return Effect.succeed(
      ids.length > 0 ? entries.filter((entry) => ids.includes(entry.id)) : entries,
    )
  })

export const listModels = ({ config }: Options) =>
  withDeployment(config, (deployment) =>
    Effect.gen(function* () {
      const files = deployment.modelFiles
      const rows = yield* Effect.forEach(yield* chosen(deployment, []), (entry) =>
        Effect.map(
          entry.sources.length ? files.find(entry.sources) : Effect.succeed(undefined),
          (found) => [
            entry.id,
            entry.task,
            entry.backend,
            found
              ? `${(found.bytes / 2 ** 20).toFixed(1)} MB`
              : entry.sources.length
                ? "not pulled"
                : "no files",
            found?.path ?? entry.sources[0]?.url ?? "",
          ],
        ),
      )
      print(deployment, formatTable([["MODEL", "TASK", "BACKEND", "FILES", "WHERE"], ...rows]))
    }),
  )

interface PullOptions extends Options {
  readonly lock?: string | true
}

/** Writes the digests of each model's files, to copy into the config file. */
const writeLock = (deployment: AssembledDeployment, entries: readonly ModelEntry[], file: string) =>
  Effect.gen(function* () {
    const models: Record<string, readonly ModelSource[]> = {}
    for (const entry of entries)
      models[entry.id] = yield* deployment.modelFiles.pinned(entry.sources)
    yield* Effect.try({
      try: () => writeFileSync(file, stringify({ models }, { aliasDuplicateObjects: false })),
      catch: (cause) => cause as Error,
    })
    process.stdout.write(`digests: ${file}\n`)
  })

export const pullModels = (ids: readonly string[], { config, lock }: PullOptions) =>
  withDeployment(config, (deployment) =>
    Effect.gen(function* () {
      const files = deployment.modelFiles
      const log = resolve(deployment.container, Tokens.log)
      const progress = makePullProgress(process.stderr)
      const pullOne = (entry: ModelEntry) =>
        pullVerified(files, log, entry.id, entry.sources, progress.report).pipe(
          Effect.ensuring(Effect.sync(() => progress.done(entry.id))),
          Effect.tap((path) => Effect.sync(() => print(deployment, `${entry.id}: ${path}\n`))),
        )
      const entries = (yield* chosen(deployment, ids)).filter((entry) => entry.sources.length > 0)
      yield* Effect.forEach(entries, pullOne, { concurrency: 4 }).pipe(
        Effect.ensuring(Effect.sync(progress.stop)),
      )
      if (lock !== undefined)
        yield* writeLock(deployment, entries, lock === true ? "models.lock.yaml" : lock)
    }),
  )

export const verifyModels = (ids: readonly string[], { config }: Options) =>
  withDeployment(config, (deployment) =>
    Effect.gen(function* () {
      const files = deployment.modelFiles
      let damaged = 0
      for (const entry of yield* chosen(deployment, ids)) {
        const wrong = entry.sources.length > 0 ? yield* files.verify(entry.sources) : []
        damaged += wrong.length
        print(
          deployment,
          wrong.length
            ? wrong.map((text) => `${entry.id}: ${text}\n`).join("")
            : `${entry.id}: ok\n`,
        )
      }
      if (damaged > 0)
        return yield* Effect.fail(
          new Error("Some files are damaged or missing. Fix: rakit models pull"),
        )
    }),
  )
