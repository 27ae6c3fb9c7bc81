import { dirname, join } from "node:path"
import { Effect } from "effect"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { resolve, Tokens } from "../../core/tokens.ts"
import type { AssembledDeployment } from "../boot/assemble.ts"
import { originOf } from "../boot/models.ts"
import { filesOf } from "../boot/open-models.ts"
import { makePullProgress } from "../progress.ts"
import { shownUrl } from "../services/model-files/failure.ts"
import { lockFileName, openSourceLock } from "../services/model-files/store/source-lock.ts"
import { pullVerified } from "../services/model-files/verified-pull.ts"
import { findDevices } from "./devices.ts"
import { formatTable, precisionOf } from "./table.ts"
import { withDeployment } from "./with-deployment.ts"

type Files = Pick<ModelEntry, "id" | "sources">

interface Options {
  readonly config: string
  readonly json?: boolean
}

const print = ({ config }: AssembledDeployment, text: string): void =>
  void process.stdout.write(config.mask.text(text))

const entriesOf = ({ container }: AssembledDeployment): readonly ModelEntry[] =>
  resolve(container, Tokens.catalogue).entries

/** All files, or those of the models (with their adapters) and of the adapters that are named. */
const chosen = (deployment: AssembledDeployment, ids: readonly string[]) =>
  Effect.suspend((): Effect.Effect<readonly Files[], Error> => {
    const entries = entriesOf(deployment)
    const owned = entries.flatMap((entry) =>
      filesOf(entry).map((files) => ({ files, model: entry.id })),
    )
    const known = new Set([...entries.map(({ id }) => id), ...owned.map(({ files }) => files.id)])
    const unknown = ids.filter((id) => !known.has(id))
    if (unknown.length > 0)
      return Effect.fail(
        new Error(
          `There is no model ${unknown.map((id) => `'${id}'`).join(", ")} in this config. Models: ${[...known].join(", ")}.`,
        ),
      )
    const wanted = owned.filter(({ model, files }) => ids.includes(model) || ids.includes(files.id))
    return Effect.succeed((ids.length ? wanted : owned).map(({ files }) => files))
  })

const headings = ["MODEL", "TASK", "BACKEND", "PRECISION", "FILES", "FROM", "WHERE"]

const printJson = (deployment: AssembledDeployment, data: unknown): void =>
  print(deployment, `${JSON.stringify({ object: "list", data }, null, 2)}\n`)

export const listModels = ({ config, json }: Options) =>
  withDeployment(config, (deployment) =>
    Effect.gen(function* () {
      const files = deployment.modelFiles
      const devices = yield* findDevices(deployment)
      const row = ({ task, backend, options }: ModelEntry, { id, sources }: Files) =>
        Effect.map(sources.length ? files.find(sources) : Effect.succeed(undefined), (found) => [
          id,
          task,
          devices.shown(backend),
          precisionOf({ options }),
          found
            ? `${(found.bytes / 2 ** 20).toFixed(1)} MB`
            : sources.length
              ? "not pulled"
              : "no files",
          originOf(deployment.models, id),
          found?.path ?? shownUrl(sources[0]?.url ?? ""),
        ])
      const rows = yield* Effect.forEach(entriesOf(deployment), (entry) =>
        Effect.forEach(entry.sources.length ? filesOf(entry) : [entry, ...filesOf(entry)], (own) =>
          row(entry, own),
        ),
      )
      if (!json) return print(deployment, formatTable([headings, ...rows.flat()]))
      const named = (row: readonly string[]) =>
        Object.fromEntries(headings.map((key, column) => [key.toLowerCase(), row[column]]))
      return printJson(deployment, rows.flat().map(named))
    }),
  )

interface PullOptions extends Options {
  readonly lock?: string | true
  readonly update: boolean
}

const besideConfig = ({ config }: AssembledDeployment): string =>
  join(dirname(config.file), lockFileName)

/** Writes what all files here have, also those that the config file pins. */
const writeLock = (deployment: AssembledDeployment, all: readonly Files[], file: string) =>
  Effect.gen(function* () {
    for (const { id, sources } of all) {
      const pinned = yield* deployment.modelFiles.pinned(sources)
      yield* Effect.tryPromise({
        try: async () => {
          const lock = openSourceLock(file)
          for (const source of pinned) await lock.keep(id, source)
        },
        catch: (cause) => cause as Error,
      })
    }
  })

export const pullModels = (ids: readonly string[], { config, lock, update, json }: PullOptions) =>
  withDeployment(config, (deployment) =>
    Effect.gen(function* () {
      const files = deployment.modelFiles
      const log = resolve(deployment.container, Tokens.log)
      const progress = makePullProgress(process.stderr)
      const pullOne = ({ id, sources }: Files) =>
        (update
          ? files.renew(id, sources, progress.report)
          : pullVerified(files, log, id, sources, progress.report)
        ).pipe(
          Effect.ensuring(Effect.sync(() => progress.done(id))),
          Effect.tap((path) => Effect.sync(() => json || print(deployment, `${id}: ${path}\n`))),
          Effect.map((path) => ({ model: id, path })),
        )
      const all = yield* chosen(deployment, ids)
      // one that can't be pulled (a gated one, say) must not end the downloads of the others
      const missing: string[] = []
      const settled = (one: Files) =>
        Effect.match(pullOne(one), {
          onFailure: ({ message }) => void missing.push(message),
          onSuccess: (pulled) => pulled,
        })
      const pulled = yield* Effect.forEach(all, settled, {
        concurrency: 4,
      }).pipe(Effect.ensuring(Effect.sync(progress.stop)))
      if (missing.length) return yield* Effect.fail(new Error(missing.join("\n")))
      const locked = lock === true ? besideConfig(deployment) : lock
      if (locked !== undefined) yield* writeLock(deployment, all, locked)
      if (json) printJson(deployment, pulled)
      else if (locked !== undefined) print(deployment, `digests: ${locked}\n`)
    }),
  )

export const verifyModels = (ids: readonly string[], { config, json }: Options) =>
  withDeployment(config, (deployment) =>
    Effect.gen(function* () {
      const files = deployment.modelFiles
      const checked = yield* Effect.forEach(yield* chosen(deployment, ids), ({ id, sources }) =>
        Effect.map(files.verify(sources), (problems) => {
          const lines = problems.length > 0 ? problems : ["ok"]
          if (!json) print(deployment, lines.map((text) => `${id}: ${text}\n`).join(""))
          return { model: id, problems }
        }),
      )
      if (json) printJson(deployment, checked)
      if (checked.some(({ problems }) => problems.length > 0))
        return yield* Effect.fail(
          new Error("Some files are damaged or missing. Fix: rakit models pull"),
        )
    }),
  )
