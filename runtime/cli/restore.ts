import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve as resolvePath } from "node:path"
import { Effect, Redacted } from "effect"
import { makeFolders } from "../../core/folders.ts"
import type { Database } from "../../core/ports/database.ts"
import type { Storage } from "../../core/ports/storage.ts"
import { resolve, resolveOptional, Tokens } from "../../core/tokens.ts"
import { firstBlob, type Report, restoreBlobs, verifyBlobs } from "../backup/blobs.ts"
import { verifyFile } from "../backup/lines-file.ts"
import { firstTable, loadDatabase, whyNotThese } from "../backup/load-database.ts"
import { type Manifest, readManifest } from "../backup/manifest.ts"
import type { AssembledDeployment } from "../boot/assemble.ts"
import { kept, makeReport, printBackup, sizeOf } from "./backup.ts"
import { startWanted, withDeployment } from "./with-deployment.ts"

const attempt = <A>(work: () => A | Promise<A>) =>
  Effect.tryPromise({ try: async () => work(), catch: (cause) => cause as Error })

const stopIf = (message: string | undefined) =>
  message === undefined ? Effect.void : Effect.fail(new Error(message))

/** Reads every byte of the backup before anything is written. */
const verify = async (folder: string, manifest: Manifest, report: Report): Promise<void> => {
  if (manifest.secret) await verifyFile(folder, manifest.secret)
  let tables = 0
  for (const table of manifest.database?.tables ?? []) {
    await verifyFile(folder, table)
    report("tables verified", ++tables, manifest.database?.tables.length)
  }
  if (manifest.blobs) await verifyBlobs(folder, manifest.blobs, report)
}

const planSecret = ({ config, container }: AssembledDeployment, folder: string) => {
  const from = readFileSync(join(folder, "secret.key"), "utf8")
  const file = join(resolve(container, Tokens.deployment).dataDir, "secret.key")
  const given = Redacted.value(config.deployment.secretKey)
  const own = given !== "" ? given : existsSync(file) ? readFileSync(file, "utf8").trim() : ""
  if (own !== "" && own !== from)
    throw new Error(
      `The backup is encrypted with another key than ${given !== "" ? "secretKey (RAKIT_SECRET_KEY)" : file}. Fix: ${given !== "" ? `set it to the content of ${join(folder, "secret.key")}` : "restore into an empty folder"}.`,
    )
  return () => {
    if (own !== "") return
    makeFolders(resolve(container, Tokens.deployment).dataDir, 0o700)
    writeFileSync(file, from, { mode: 0o600, flag: "wx", flush: true })
  }
}

interface Target {
  readonly database: Database | undefined
  readonly storage: Storage | undefined
}

const mustBeEmpty = ({ database, storage }: Target) =>
  Effect.gen(function* () {
    const table = database && (yield* firstTable(database))
    yield* stopIf(
      table &&
        `The database is not empty: it has the table ${table}. Nothing was restored. Fix: name an empty one (DATABASE_URL, or RAKIT_DATA for the embedded one).`,
    )
    const blob = storage && (yield* firstBlob(storage))
    yield* stopIf(
      blob &&
        `The storage is not empty: it has the blob ${blob}. Nothing was restored. Fix: name an empty folder or bucket.`,
    )
  })

const mustTake = (manifest: Manifest, { order }: AssembledDeployment) => {
  const provides = (name: string) =>
    order.some(({ plugin }) => plugin.provides.some((token) => token.name === name))
  const why = (part: unknown, token: string) =>
    part && !provides(token)
      ? `The backup has a ${token}, and this config file names no plugin for one. Fix: name it under plugins.`
      : undefined
  const plugins = order.map(({ plugin }) => plugin)
  return stopIf(
    why(manifest.database, Tokens.database.name) ??
      why(manifest.blobs, Tokens.storage.name) ??
      (manifest.database && whyNotThese(manifest.database, plugins)),
  )
}

const restoreData = (
  manifest: Manifest,
  { order }: AssembledDeployment,
  { database, storage }: Target,
  folder: string,
  report: Report,
) =>
  Effect.gen(function* () {
    if (storage && manifest.blobs) yield* restoreBlobs(storage, folder, manifest.blobs, report)
    const plugins = order.map(({ plugin }) => plugin).filter(({ migrations }) => migrations)
    if (database && manifest.database)
      yield* loadDatabase(database, plugins, manifest.database, folder, report)
  }).pipe(
    Effect.mapError(
      (error) =>
        new Error(
          `The restore did not end: ${"message" in error && error.message ? error.message : error._tag}. Fix: empty the target, and restore again.`,
        ),
    ),
  )

/** Into an empty deployment, of this version or a newer one than the backup's. */
export const restore = async (file: string, from: string, json = false): Promise<void> => {
  const folder = resolvePath(from)
  const { report, clear } = makeReport()
  const manifest = await withDeployment(file, (deployment) =>
    Effect.gen(function* () {
      const manifest = yield* attempt(() => readManifest(folder))
      yield* mustTake(manifest, deployment)
      yield* attempt(() => verify(folder, manifest, report))
      const keepSecret = yield* attempt(() =>
        manifest.secret ? planSecret(deployment, folder) : () => {},
      )
      yield* startWanted(deployment, kept)
      const target = {
        database: resolveOptional(deployment.container, Tokens.database),
        storage: resolveOptional(deployment.container, Tokens.storage),
      }
      yield* mustBeEmpty(target)
      yield* attempt(keepSecret)
      yield* restoreData(manifest, deployment, target, folder, report)
      return manifest
    }),
  )
  clear()
  if (json) return printBackup(manifest, folder)
  process.stdout.write(
    `Restored ${manifest.deployment} of ${manifest.createdAt}: ${sizeOf(manifest)}. \`rakit fsck\` compares them.\n`,
  )
}
