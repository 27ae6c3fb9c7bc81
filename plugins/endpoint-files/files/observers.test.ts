import { Effect } from "effect"
import { sql } from "kysely"
import { afterEach, beforeEach, expect, it } from "vitest"
import type { FileObserver, StoredFile } from "../../../core/index.ts"
import { PortError } from "../../../core/index.ts"
import { expireFiles } from "../sweep/expire.ts"
import { showUnobserved } from "../sweep/unobserved.ts"
import type { FilesTables } from "../tables.ts"
import type { Uploader } from "../tenant.ts"
import { type Fixture, field, filePart, formOf, openFixture, outcome } from "../testing/fixture.ts"
import { addPart } from "../uploads/add-part.ts"
import { completeUpload } from "../uploads/complete-upload.ts"
import { createUpload, readUpload } from "../uploads/create-upload.ts"
import { createFile } from "./create-file.ts"
import { getFile } from "./download.ts"
import { toFile } from "./file-schema.ts"
import { makeFiles } from "./files-service.ts"

const run = Effect.runPromise
const uploader: Uploader = { account: "acct_1", mode: "live", keyId: "key_1" }
let test: Fixture
beforeEach(async () => {
  test = await openFixture()
})
afterEach(() => test?.close())

const knowledge = (fields: Readonly<Record<string, string>> = {}) =>
  createFile(
    test.deps,
    uploader,
    formOf([
      filePart(10, "file", "a.txt"),
      field("purpose", "knowledge"),
      ...Object.entries(fields).map(([name, value]) => field(name, value)),
    ]),
  )

/** Reads inside its transaction what it hears of, so that only a row of that one is seen. */
const listener = () => {
  const created: StoredFile[] = []
  const removed: string[] = []
  const { database } = test.deps
  const observer: FileObserver = {
    created: (file, tx) =>
      Effect.map(
        database.run(() =>
          database
            .queries<FilesTables>(tx)
            .selectFrom("files_file")
            .select("id")
            .where("id", "=", file.id)
            .executeTakeFirst(),
        ),
        (row) => void (row && created.push(file)),
      ),
    removed: ({ account, mode }, id) =>
      Effect.sync(() => void removed.push(`${account} ${mode} ${id}`)),
  }
  makeFiles(test.deps).observe(observer)
  return { created, removed }
}

it("a knowledge file is processed at once where nobody observes files, and waits where somebody does", async () => {
  expect(await run(knowledge())).toMatchObject({ status: "processed" })
  listener()
  const { id } = await run(knowledge())
  const files = makeFiles(test.deps)
  const shown = async () => toFile(await run(getFile(test.deps, uploader, id)))
  expect(await shown()).toMatchObject({ status: "uploaded" })
  const progress = { stage: "embedding", pages: 3, chunks: 7 }
  await run(files.mark(uploader, id, { status: "processing", progress }))
  expect(await shown()).toMatchObject({ status: "processing", progress })
  await run(files.mark(uploader, id, { status: "failed", details: "It is encrypted." }))
  expect(await shown()).toMatchObject({ status: "failed", status_details: "It is encrypted." })
  expect(await shown()).not.toHaveProperty("progress")
})

it("what was uploaded while nobody observed files is shown once, when somebody does", async () => {
  // both at once, so that the pool has two open connections
  const [{ id }, gone] = await Promise.all([run(knowledge()), run(knowledge())])
  await run(makeFiles(test.deps).remove(uploader, gone.id))
  expect(await run(showUnobserved(test.deps))).toBe(0)
  const { created } = listener()
  await run(Effect.all([showUnobserved(test.deps), showUnobserved(test.deps)], { concurrency: 2 }))
  expect(created.map((file) => [file.id, file.status])).toEqual([[id, "uploaded"]])
  await run(knowledge())
  expect(await run(showUnobserved(test.deps))).toBe(0)
  expect(created).toHaveLength(2)
})

it("more older files than one turn reads are shown, past those whose observer fails", async () => {
  const first = await run(knowledge())
  await sql`
    INSERT INTO files_file SELECT (jsonb_populate_record(f, jsonb_build_object('id', 'file-' || n, 'blob_key', 'b' || n, 'seq', 1000 + n))).*
    FROM files_file f, generate_series(1, 510) n`.execute(test.deps.database.queries())
  const { created } = listener()
  const [observer] = test.deps.observers
  test.deps.observers[0] = {
    ...observer!,
    // the first ones in their order, more than a turn reads
    created: (file, tx) =>
      file.id === first.id || Number(file.id.slice(5)) <= 505
        ? Effect.fail(new PortError({ port: "observer", message: "no place left" }))
        : observer!.created(file, tx),
  }
  expect(await run(showUnobserved(test.deps))).toBe(5)
  expect(created.map(({ id }) => id)).toEqual([506, 507, 508, 509, 510].map((n) => `file-${n}`))
  const { rows } =
    await sql`SELECT id FROM files_file WHERE NOT observed AND status = 'processed'`.execute(
      test.deps.database.queries(),
    )
  // they are tried again
  expect(rows).toHaveLength(506)
})

it("observers hear of a file inside its transaction, with its key and its metadata", async () => {
  const { created, removed } = listener()
  const made = await run(knowledge({ "metadata[team]": "sales", "metadata[a b]": "ж" }))
  const metadata = { team: "sales", "a b": "ж" }
  expect(toFile(made)).toMatchObject({ metadata })
  const body = { filename: "b.txt", purpose: "knowledge", bytes: 10, mime_type: "text/plain" }
  const upload = await run(
    Effect.flatMap(readUpload(test.deps, { ...body, metadata: { team: "law" } }), (it) =>
      createUpload(test.deps, uploader, it),
    ),
  )
  const part = await run(addPart(test.deps, uploader, upload.id, formOf([filePart(10, "data")])))
  const { file } = await run(
    completeUpload(test.deps, uploader, upload.id, { part_ids: [part.id] }),
  )
  const tenant = { account: "acct_1", mode: "live" }
  expect(created).toMatchObject([
    { id: made.id, tenant, keyId: "key_1", metadata },
    { id: file.id, tenant, keyId: "key_1", metadata: { team: "law" } },
  ])
  await run(makeFiles(test.deps).remove(uploader, made.id))
  expect(await run(makeFiles(test.deps).remove(uploader, made.id))).toBe(false)
  test.clock.advance(test.deps.limits.keepMs)
  await run(expireFiles(test.deps))
  expect(removed).toEqual([made.id, file.id].map((id) => `acct_1 live ${id}`))
})

it("where an observer fails, nothing is created, and nothing is deleted", async () => {
  const kept = await run(knowledge())
  const broken = Effect.fail(new PortError({ port: "queue", message: "no" }))
  makeFiles(test.deps).observe({ created: () => broken, removed: () => broken })
  expect(await outcome(knowledge())).toBe("PortError")
  expect(await outcome(makeFiles(test.deps).remove(uploader, kept.id))).toBe("PortError")
  expect((await test.rowsOf("files_file")).map(({ id }) => id)).toEqual([kept.id])
  expect(await test.blobs()).toEqual([kept.blob_key])
  expect(await test.quota()).toMatchObject({ said: 10n, sum: 10n, files: 1n, count: 1n })
})
