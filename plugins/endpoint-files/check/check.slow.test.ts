import { Effect, Stream } from "effect"
import { type RawBuilder, sql } from "kysely"
import { afterEach, beforeEach, expect, it } from "vitest"
import type { ConsistencyCheck, Finding } from "../../../core/index.ts"
import { fakeStorage } from "../../../testing/index.ts"
import { beginIncoming, growIncoming } from "../blobs/incoming.ts"
import { createFile } from "../files/create-file.ts"
import { makeFiles } from "../files/files-service.ts"
import { orphanAgeMs } from "../sweep/orphans.ts"
import {
  chunks,
  type Fixture,
  field,
  filePart,
  formOf,
  openFixture,
  tenant,
} from "../testing/fixture.ts"
import { addPart } from "../uploads/add-part.ts"
import { completeUpload } from "../uploads/complete-upload.ts"
import { createUpload } from "../uploads/create-upload.ts"
import { blobCheck } from "./blob-check.ts"
import { fileCheck } from "./file-check.ts"
import { quotaCheck } from "./quota-check.ts"
import { uploadCheck } from "./upload-check.ts"

const run = Effect.runPromise
const minuteMs = 60_000
let test: Fixture
beforeEach(async () => {
  test = await openFixture(fakeStorage())
})
afterEach(() => test?.close())

const checks = (): readonly ConsistencyCheck[] =>
  [fileCheck, blobCheck, quotaCheck, uploadCheck].map((check) => check(test.deps))
/** Returns the findings of all checks, as `check: subject: problem (remedy)`. */
const findings = async () => {
  const all: (Finding & { readonly check: string })[] = []
  for (const check of checks())
    for (const finding of await run(Stream.runCollect(check.findings(() => {}))))
      all.push({ ...finding, check: check.name })
  return all
}
const lines = (found: Awaited<ReturnType<typeof findings>>) =>
  found.map(
    ({ check, subject, problem, remedy = "-" }) => `${check}: ${subject}: ${problem} (${remedy})`,
  )
/** Repairs twice: a repair is idempotent. */
const repairAll = async () => {
  for (const { repair } of await findings()) {
    if (!repair) continue
    await run(repair)
    await run(repair)
  }
}
const query = (text: RawBuilder<unknown>) =>
  run(test.deps.database.run(() => text.execute(test.deps.database.queries())))

const make = (bytes = 100) =>
  run(createFile(test.deps, tenant, formOf([filePart(bytes), field("purpose", "batch")])))
const openUpload = async (bytes = 200) => {
  const upload = await run(
    createUpload(test.deps, tenant, {
      filename: "a",
      purpose: "batch_input",
      fileStatus: "uploaded",
      metadata: {},
      bytes,
      keepMs: test.deps.limits.keepMs,
    }),
  )
  return {
    upload,
    part: await run(addPart(test.deps, tenant, upload.id, formOf([filePart(bytes, "data")]))),
  }
}
/** Makes a file, a deleted file, a file of an upload, an open upload and a running request. */
const fill = async () => {
  const file = await make()
  await run(makeFiles(test.deps).remove(tenant, (await make(50)).id))
  const { upload, part } = await openUpload(10)
  await run(completeUpload(test.deps, tenant, upload.id, { part_ids: [part.id] }))
  const incoming = await run(beginIncoming(test.deps, tenant))
  await run(growIncoming(test.deps, incoming, { need: 1, want: 20 }))
  await run(test.deps.storage.put(incoming.blobKey, chunks(20), 20))
  return { file, incoming, open: await openUpload() }
}

it("finds nothing where nothing is wrong, and says how much it compared", async () => {
  await fill()
  expect(lines(await findings())).toEqual([])
  let looked = 0
  for (const check of checks()) {
    await run(
      Stream.runDrain(
        check.findings((things) => {
          looked += things
        }),
      ),
    )
  }
  expect(looked).toBeGreaterThan(5)
})

it("names a file whose blob is missing, or has another size; only a person can repair that", async () => {
  const { file } = await fill()
  const other = await make(70)
  await run(test.deps.storage.remove(file.blob_key))
  await run(test.deps.storage.put(other.blob_key, chunks(69), 100))
  expect(lines(await findings())).toEqual([
    `files: file ${file.id} of account ${tenant.account} (live): its blob ${file.blob_key} of 100 bytes is missing (-)`,
    `files: file ${other.id} of account ${tenant.account} (live): its blob ${other.blob_key} has 69 bytes, not 70 (-)`,
  ])
  await repairAll()
  expect(await findings()).toHaveLength(2)
  await run(test.deps.storage.put(file.blob_key, chunks(100), 100))
  await run(makeFiles(test.deps).remove(tenant, other.id))
  expect(await findings()).toEqual([])
})

it("names a file whose blob is another account's", async () => {
  const { file } = await fill()
  await query(sql`UPDATE files_file SET account = 'acct_other' WHERE id = ${file.id}`)
  expect(lines((await findings()).filter(({ check }) => check === "files"))).toEqual([
    `files: file ${file.id} of account acct_other (live): its blob ${file.blob_key} is another account's (-)`,
  ])
  await query(sql`UPDATE files_file SET account = ${tenant.account} WHERE id = ${file.id}`)
  expect(await findings()).toEqual([])
})

it("removes blobs that nobody names, once they are old enough", async () => {
  const { file } = await fill()
  const orphan = makeFiles(test.deps).newBlobKey(tenant)
  await run(test.deps.storage.put(orphan, chunks(10), 10))
  await run(test.deps.storage.put("files/odd", chunks(10), 10))
  await run(test.deps.storage.put("batches/of-others", chunks(10), 10))
  const odd = "blobs: blob files/odd: it lies among the files, but its key is none of theirs (-)"
  expect(lines(await findings())).toEqual([odd])
  test.clock.advance(orphanAgeMs)
  const found = (await findings()).filter(({ check }) => check === "blobs")
  expect(lines(found)).toEqual([
    odd,
    `blobs: blob ${orphan}: no file, part or request names it (it is removed)`,
  ])
  await repairAll()
  expect(lines(await findings())).toEqual([odd])
  expect(await test.blobs()).toEqual(expect.arrayContaining([file.blob_key, "batches/of-others"]))
  expect(await test.blobs()).not.toContain(orphan)
})

it("a blob that came to its name between finding and repairing stays", async () => {
  const files = makeFiles(test.deps)
  const blobKey = files.newBlobKey(tenant)
  await run(test.deps.storage.put(blobKey, chunks(10), 10))
  test.clock.advance(orphanAgeMs)
  const [finding] = await findings()
  await run(
    files.create({
      id: files.newId(),
      tenant,
      filename: "a",
      purpose: "batch_output",
      blobKey,
      bytes: 10,
      expiresMs: test.clock.nowMs() + 1000,
    }),
  )
  await run(finding!.repair!)
  expect([await test.blobs(), await findings()]).toEqual([[blobKey], []])
})

it("deletes what is overdue in the deletion queue, and keeps what a file names", async () => {
  const { file } = await fill()
  const gone = makeFiles(test.deps).newBlobKey(tenant)
  await run(test.deps.storage.put(gone, chunks(10), 10))
  await query(
    sql`INSERT INTO files_trash (blob_key, due_at) VALUES (${gone}, ${new Date(test.clock.nowMs())}), (${file.blob_key}, ${new Date(test.clock.nowMs() + 10 * minuteMs)})`,
  )
  expect(lines(await findings())).toEqual([
    `blobs: blob ${file.blob_key}: it is to be removed, but a file or a part names it (it is kept)`,
  ])
  test.clock.advance(4 * minuteMs)
  expect(await findings()).toHaveLength(1)
  test.clock.advance(minuteMs)
  expect(lines(await findings()).sort()).toContain(
    `blobs: blob ${gone}: it was thrown away, and is still there (it is removed)`,
  )
  await repairAll()
  expect(await findings()).toEqual([])
  expect([
    (await test.blobs()).includes(gone),
    (await test.blobs()).includes(file.blob_key),
  ]).toEqual([false, true])
})

it("what is deleted while it is looked at is no finding", async () => {
  const { file } = await fill()
  const gone = makeFiles(test.deps).newBlobKey(tenant)
  test.clock.advance(orphanAgeMs)
  const { storage } = test.deps
  const fixture = {
    ...test.deps,
    storage: {
      ...storage,
      // the list was read before, and the file is deleted at the first check
      list: (prefix: string) =>
        Stream.concat(Stream.make({ key: gone, bytes: 1, etag: "e" }), storage.list(prefix)),
      stat: (key: string) =>
        Effect.andThen(
          key === file.blob_key ? makeFiles(test.deps).remove(tenant, file.id) : Effect.void,
          Effect.suspend(() => storage.stat(key)),
        ),
    },
  }
  for (const check of [fileCheck(fixture), blobCheck(fixture)])
    expect(await run(Stream.runCollect(check.findings(() => {})))).toEqual([])
})

it("counts quotas again", async () => {
  await fill()
  const before = await test.quota()
  await query(sql`UPDATE files_usage SET bytes = bytes + 5, files = files - 1`)
  await query(sql`INSERT INTO files_usage VALUES ('acct_2', 'test', 7, 1)`)
  expect(lines(await findings())).toEqual([
    "quota: quota of account acct_1 (live): it counts 335 bytes and 2 files; there are 330 and 3 (it is counted again)",
    "quota: quota of account acct_2 (test): it counts 7 bytes and 1 files; there are 0 and 0 (it is counted again)",
  ])
  await repairAll()
  expect([await findings(), await test.quota()]).toEqual([[], before])
  await query(sql`DELETE FROM files_usage WHERE account = 'acct_1'`)
  await repairAll()
  expect([await findings(), await test.quota()]).toEqual([[], before])
})

it("drops parts without a blob, and parts of uploads that are over", async () => {
  const { upload, part } = await openUpload()
  await run(test.deps.storage.remove(part.blob_key))
  expect(lines(await findings())).toEqual([
    `uploads: part ${part.id} of upload ${upload.id}: its blob ${part.blob_key} of 200 bytes is missing (it is dropped, so that completing the upload names it and it can be sent again)`,
  ])
  await repairAll()
  expect(await findings()).toEqual([])
  const again = await run(addPart(test.deps, tenant, upload.id, formOf([filePart(200, "data")])))
  await query(sql`UPDATE files_upload SET status = 'cancelled'`)
  expect(lines((await findings()).filter(({ check }) => check === "uploads"))).toEqual([
    `uploads: part ${again.id} of upload ${upload.id}: its upload is over, or there is none (it is dropped with its blob)`,
  ])
  await repairAll()
  expect([await findings(), await test.blobs()]).toEqual([[], []])
})

it("gives up uploads and requests whose time was over long ago", async () => {
  const { open, incoming } = await fill()
  test.clock.advance(60 * minuteMs + 9 * minuteMs)
  expect(lines((await findings()).filter(({ check }) => check === "uploads"))).toEqual([
    `uploads: request ${incoming.id} of account ${tenant.account} (live): its server died, and its bytes are still held (it is given up)`,
  ])
  test.clock.advance(minuteMs)
  expect(lines((await findings()).filter(({ check }) => check === "uploads"))).toContain(
    `uploads: upload ${open.upload.id} of account ${tenant.account} (live): its time is over, and it is still open (it expires)`,
  )
  await repairAll()
  expect([
    await findings(),
    await test.rowsOf("files_incoming"),
    await test.rowsOf("files_part"),
  ]).toEqual([[], [], []])
})

it("goes through more rows than a page has", async () => {
  await query(sql`
    INSERT INTO files_file (id, account, mode, filename, purpose, status, bytes, counted, blob_key, created_at, expires_at)
    SELECT 'file-' || n, 'acct_1', 'live', 'a', 'batch_output', 'uploaded', 1, false, 'files/live/acct_1/' || n, ${new Date(0)}, ${new Date(2 ** 42)} FROM generate_series(1, 1001) n`)
  expect(await findings()).toHaveLength(1001)
})
