import { Effect, Stream } from "effect"
import { sql } from "kysely"
import type { Database, Files, Ids, Storage, StoredFile, Tenant } from "../../../core/index.ts"

interface FileRow {
  readonly id: string
  readonly file: Omit<StoredFile, "id">
}

/** The Files service in rows, so that it takes part in transactions. */
export const rowsFiles = async (database: Database, storage: Storage, ids: Ids) => {
  await sql`CREATE TABLE test_file (id text PRIMARY KEY, file jsonb NOT NULL)`.execute(
    database.queries(),
  )
  const insert = (file: StoredFile, tx?: Parameters<Files["create"]>[1]) =>
    Effect.as(
      database.run(() =>
        sql`INSERT INTO test_file VALUES (${file.id}, ${JSON.stringify(file)}::jsonb)`.execute(
          database.queries(tx),
        ),
      ),
      file,
    )
  const rows = async (): Promise<readonly StoredFile[]> =>
    (await sql<FileRow>`SELECT * FROM test_file ORDER BY id`.execute(database.queries())).rows.map(
      ({ id, file }) => ({ ...file, id }),
    )
  const remove = (id: string) =>
    Effect.map(
      database.run(() => sql`DELETE FROM test_file WHERE id = ${id}`.execute(database.queries())),
      ({ numAffectedRows }) => (numAffectedRows ?? 0n) > 0n,
    )
  const files: Files = {
    find: (tenant, id) =>
      Effect.promise(async () =>
        (await rows()).find(
          (file) =>
            file.id === id &&
            file.tenant.account === tenant.account &&
            file.tenant.mode === tenant.mode,
        ),
      ),
    knows: () => Effect.succeed(true),
    read: ({ blobKey }, range) => storage.get(blobKey, range),
    newId: () => ids.make("file-"),
    newBlobKey: ({ account }) => `files/${account}/${ids.make("b")}`,
    create: (file, tx) => insert({ ...file, status: "uploaded", createdMs: 0, metadata: {} }, tx),
    observe: () => {},
    mark: () => Effect.succeed(true),
    remove: (_, id) => remove(id),
  }
  const upload = async (tenant: Tenant, text: string): Promise<string> => {
    const blobKey = files.newBlobKey(tenant)
    const { bytes } = await Effect.runPromise(
      storage.put(blobKey, Stream.make(Buffer.from(text)), 2 ** 30),
    )
    const file = {
      id: files.newId(),
      tenant,
      filename: "in.jsonl",
      purpose: "batch_input" as const,
      status: "uploaded" as const,
      bytes,
      blobKey,
      createdMs: 0,
      expiresMs: 0,
      metadata: {},
    }
    return (await Effect.runPromise(insert(file))).id
  }
  const text = (file: StoredFile): Promise<string> =>
    Effect.runPromise(
      Effect.map(Stream.runCollect(files.read(file)), (chunks) => Buffer.concat(chunks).toString()),
    )
  return { files, rows, upload, text, remove: (id: string) => Effect.runPromise(remove(id)) }
}
