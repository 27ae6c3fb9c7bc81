import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve as resolvePath } from "node:path"
import { Effect, Redacted } from "effect"
import { makeFolders } from "../../core/folders.ts"
import { systemClock } from "../../core/services/clock.ts"
import { resolve, resolveOptional, type Token, Tokens } from "../../core/tokens.ts"
import { makeBlobCopy, type Report } from "../backup/blobs.ts"
import { format, type Manifest, writeManifest } from "../backup/manifest.ts"
import { beginSnapshot, copyDatabase } from "../backup/snapshot.ts"
import type { AssembledDeployment } from "../boot/assemble.ts"
import { version } from "../version.ts"
import { countOf, makeProgressLine } from "./fsck-progress.ts"
import { mustHaveData, startWanted, withDeployment } from "./with-deployment.ts"

/** What backups hold, beside the secret. */
export const kept: readonly Token<unknown>[] = [
  Tokens.database as Token<unknown>,
  Tokens.storage as Token<unknown>,
]

export const makeReport = (): { readonly report: Report; clear(): void } => {
  const line = makeProgressLine(process.stderr, systemClock)
  return {
    report: (what, done, of) =>
      line.report(() => `${what}: ${countOf(done)}${of === undefined ? "" : ` of ${countOf(of)}`}`),
    clear: line.clear,
  }
}

const newFolder = (folder: string) =>
  Effect.try({
    try: () => {
      if (existsSync(folder) && readdirSync(folder).length > 0)
        throw new Error(`${folder} is not empty. Fix: name a folder that does not exist.`)
      makeFolders(folder, 0o700)
    },
    catch: (cause) => cause as Error,
  })

/**
 * The secret from which the keys are derived, or undefined where no plugin encrypts anything.
 * Unlike the server, it makes none: what is in the database was encrypted with another one.
 */
const secretOf = ({ config, order, container }: AssembledDeployment): string | undefined => {
  if (!order.some(({ plugin }) => plugin.needs.some(({ name }) => name === Tokens.secrets.name)))
    return undefined
  const given = Redacted.value(config.deployment.secretKey)
  if (given !== "") return given
  const file = join(resolve(container, Tokens.deployment).dataDir, "secret.key")
  if (existsSync(file)) return readFileSync(file, "utf8").trim()
  throw new Error(
    `There is no ${file}, so what the database holds in encrypted form could not be restored. Fix: set dataDir (RAKIT_DATA) to the folder of the server, or secretKey (RAKIT_SECRET_KEY) to its key.`,
  )
}

const copySecret = (deployment: AssembledDeployment, folder: string) =>
  Effect.try({
    try: (): Manifest["secret"] => {
      const secret = secretOf(deployment)
      if (secret === undefined) return undefined
      writeFileSync(join(folder, "secret.key"), secret, { mode: 0o600, flag: "wx", flush: true })
      return {
        file: "secret.key",
        bytes: Buffer.byteLength(secret),
        sha256: createHash("sha256").update(secret).digest("hex"),
        keyId: resolve(deployment.container, Tokens.secrets).keyId,
      }
    },
    catch: (cause) => cause as Error,
  })

/**
 * Blobs are written before the rows that name them and removed after them, so they are copied
 * before the snapshot, and those that are new once more when it has begun.
 */
const copyData = ({ container, order }: AssembledDeployment, folder: string, report: Report) =>
  Effect.gen(function* () {
    const database = resolveOptional(container, Tokens.database)
    const storage = resolveOptional(container, Tokens.storage)
    const blobs = storage && makeBlobCopy(storage, folder, report)
    const plugins = order.filter(({ plugin }) => plugin.migrations).map(({ plugin }) => plugin.name)
    if (blobs) yield* blobs.pass
    const rows =
      database &&
      (yield* database.transaction((tx) =>
        Effect.gen(function* () {
          yield* beginSnapshot(database, tx)
          if (blobs) yield* blobs.pass
          return yield* copyDatabase(database, tx, plugins, folder, report)
        }),
      ))
    return { ...(rows && { database: rows }), ...(blobs && { blobs: yield* blobs.close }) }
  })

export const sizeOf = ({ database, blobs }: Manifest): string => {
  const rows = database?.tables.reduce((sum, table) => sum + table.rows, 0) ?? 0
  return `${countOf(rows)} rows of ${database?.tables.length ?? 0} tables, ${countOf(blobs?.count ?? 0)} blobs (${countOf(blobs?.size ?? 0)} bytes)`
}

/** What is in a backup, for programs. */
export const printBackup = (manifest: Manifest, folder: string): void => {
  const { deployment, createdAt, rakit, database, blobs } = manifest
  const counts = {
    tables: database?.tables.length ?? 0,
    rows: database?.tables.reduce((sum, { rows }) => sum + rows, 0) ?? 0,
    blobs: blobs?.count ?? 0,
    blob_bytes: blobs?.size ?? 0,
  }
  const facts = { object: "backup", deployment, created_at: createdAt, rakit, folder, ...counts }
  process.stdout.write(`${JSON.stringify(facts, null, 2)}\n`)
}

/** Works while the server runs: rows are those of one moment. */
export const backup = async (file: string, out: string, json = false): Promise<void> => {
  const folder = resolvePath(out)
  const { report, clear } = makeReport()
  const manifest = await withDeployment(file, (deployment) =>
    Effect.gen(function* () {
      yield* mustHaveData(deployment)
      yield* newFolder(folder)
      const secret = yield* copySecret(deployment, folder)
      yield* startWanted(deployment, kept)
      const data = yield* copyData(deployment, folder, report)
      if (!data.database && !data.blobs)
        return yield* Effect.fail(new Error("This deployment keeps no data."))
      const manifest: Manifest = {
        object: "rakit.backup",
        format,
        rakit: version,
        createdAt: new Date(systemClock.nowMs()).toISOString(),
        deployment: deployment.config.deployment.name,
        ...data,
        ...(secret && { secret }),
      }
      yield* Effect.tryPromise({
        try: () => writeManifest(folder, manifest),
        catch: (cause) => cause as Error,
      })
      return manifest
    }),
  )
  clear()
  if (json) return printBackup(manifest, folder)
  process.stdout.write(
    `Backed up ${manifest.deployment} to ${folder}: ${sizeOf(manifest)}.\n${
      manifest.secret
        ? "Keep this folder secret: secret.key decrypts what the database holds in encrypted form.\n"
        : ""
    }`,
  )
}
