import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Database,
  type PortError,
  type Tenant,
  type Transaction,
} from "../../../core/index.ts"
import type { FileLimits } from "../settings.ts"
import type { FilesTables } from "../tables.ts"

const refuse = (message: string) => Effect.fail(apiError("storage_quota_exceeded", message))
const megabytes = (bytes: number) => `${Math.floor(bytes / 2 ** 20)} MB`

/**
 * Locks the quota row of an account and mode. Concurrent uploads meet here, so this lock is always
 * taken last.
 */
const lock = (database: Database, { account, mode }: Tenant, tx: Transaction) =>
  database.run(async () => {
    const db = database.queries<FilesTables>(tx)
    await db
      .insertInto("files_usage")
      .values({ account, mode, bytes: 0n, files: 0n })
      .onConflict((on) => on.doNothing())
      .execute()
    return db
      .selectFrom("files_usage")
      .select(["bytes", "files"])
      .where("account", "=", account)
      .where("mode", "=", mode)
      .forUpdate()
      .executeTakeFirstOrThrow()
  })

/** Whether `needBytes` would fit now. Takes nothing, so another request may take them first. */
export const fitsQuota = (
  database: Database,
  { quotaBytes, maxFiles }: FileLimits,
  { account, mode }: Tenant,
  needBytes: number,
): Effect.Effect<boolean, PortError> =>
  Effect.map(
    database.run(() =>
      database
        .queries<FilesTables>()
        .selectFrom("files_usage")
        .select(["bytes", "files"])
        .where("account", "=", account)
        .where("mode", "=", mode)
        .executeTakeFirst(),
    ),
    (row) =>
      Number(row?.bytes ?? 0) + needBytes <= quotaBytes && Number(row?.files ?? 0) < maxFiles,
  )

export interface QuotaChange {
  readonly bytes: number
  readonly files?: number
}

/**
 * Adjusts the row without checking the limits: for what was taken before and is converted or
 * released.
 */
export const adjustQuota = (
  database: Database,
  { account, mode }: Tenant,
  { bytes, files = 0 }: QuotaChange,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.asVoid(
    database.run(() =>
      database
        .queries<FilesTables>(tx)
        .updateTable("files_usage")
        .set((eb) => ({
          bytes: eb("bytes", "+", BigInt(bytes)),
          files: eb("files", "+", BigInt(files)),
        }))
        .where("account", "=", account)
        .where("mode", "=", mode)
        .execute(),
    ),
  )

/**
 * Takes at least `need` and up to `want` bytes of what is left of the quota, or fails with 413.
 * Returns the number of bytes taken.
 */
export const takeQuota = (
  database: Database,
  limits: FileLimits,
  tenant: Tenant,
  { need, want }: { readonly need: number; readonly want: number },
  tx: Transaction,
): Effect.Effect<number, ApiError | PortError> =>
  Effect.gen(function* () {
    const { bytes, files } = yield* lock(database, tenant, tx)
    const left = limits.quotaBytes - Number(bytes)
    if (left < need)
      return yield* refuse(
        `The account's files would take more than ${megabytes(limits.quotaBytes)}; delete some, or wait until some expire.`,
      )
    if (Number(files) >= limits.maxFiles)
      return yield* refuse(
        `The account has ${limits.maxFiles} files, which is the limit; delete some.`,
      )
    const taken = Math.min(left, want)
    yield* adjustQuota(database, tenant, { bytes: taken }, tx)
    return taken
  })
