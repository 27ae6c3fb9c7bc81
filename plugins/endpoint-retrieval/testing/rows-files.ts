import { Effect, Stream } from "effect"
import { sql } from "kysely"
import type {
  Database,
  FileMark,
  FileObserver,
  Files,
  StoredFile,
  Tenant,
  Transaction,
} from "../../../core/index.ts"

type Row = { readonly file: StoredFile & Pick<FileMark, "details" | "progress"> }

/** Files in rows, so that they take part in transactions, with their bytes in memory. */
export const rowsFiles = async (database: Database, nowMs: () => number) => {
  await sql`CREATE TABLE IF NOT EXISTS test_file (id text PRIMARY KEY, file jsonb NOT NULL)`.execute(
    database.queries(),
  )
  await sql`DELETE FROM test_file`.execute(database.queries())
  const observers: FileObserver[] = []
  const contents = new Map<string, string>()
  const execute = (query: ReturnType<typeof sql>, tx?: Transaction) =>
    database.run(() => query.execute(database.queries(tx)))
  const find = ({ account, mode }: Tenant, id: string) =>
    Effect.map(
      execute(
        sql`SELECT file FROM test_file WHERE id = ${id} AND file->'tenant' = ${JSON.stringify({ account, mode })}::jsonb`,
      ),
      ({ rows }) => (rows[0] as Row | undefined)?.file,
    )
  const never = () => Effect.die("not needed here")
  const files: Files = {
    find,
    knows: never,
    read: ({ id }) =>
      Stream.suspend(() => Stream.make(Buffer.from(contents.get(id) ?? ""))) as never,
    newId: never as never,
    newBlobKey: never as never,
    create: never,
    observe: (observer) => void observers.push(observer),
    mark: (_, id, mark, tx) =>
      Effect.map(
        execute(
          sql`UPDATE test_file SET file = file - 'details' - 'progress' || ${JSON.stringify(mark)}::jsonb WHERE id = ${id}`,
          tx,
        ),
        ({ numAffectedRows }) => (numAffectedRows ?? 0n) > 0n,
      ),
    remove: (tenant, id) =>
      database.transaction((tx) =>
        Effect.gen(function* () {
          yield* execute(sql`DELETE FROM test_file WHERE id = ${id}`, tx)
          for (const observer of observers) yield* observer.removed(tenant, id, tx)
          return true
        }),
      ),
  }
  /** Uploads a text as a knowledge file of the account's key. Returns its id. */
  const upload = async (text: string, more: Partial<StoredFile> = {}): Promise<string> => {
    const id = `file-${contents.size + 1}`
    contents.set(id, text)
    const file: StoredFile = {
      id,
      tenant: { account: "acct_1", mode: "live" },
      filename: "a.txt",
      purpose: "knowledge",
      status: "uploaded",
      bytes: text.length,
      blobKey: id,
      createdMs: nowMs(),
      expiresMs: nowMs() + 30 * 86_400_000,
      keyId: "key_1",
      metadata: {},
      ...more,
    }
    await Effect.runPromise(
      database.transaction((tx) =>
        Effect.gen(function* () {
          yield* execute(
            sql`INSERT INTO test_file VALUES (${id}, ${JSON.stringify(file)}::jsonb)`,
            tx,
          )
          for (const observer of observers) yield* observer.created(file, tx)
        }),
      ),
    )
    return id
  }
  const file = async (id: string, tenant: Tenant = { account: "acct_1", mode: "live" }) =>
    (await Effect.runPromise(find(tenant, id))) as Row["file"]
  return { files, upload, file }
}
