import { Effect } from "effect"
import { afterEach, beforeEach, expect, it } from "vitest"
import { PortError } from "../../../core/index.ts"
import { fakeStorage } from "../../../testing/index.ts"
import { deleteDueBlobs } from "../blobs/deletion-queue.ts"
import { beginIncoming, endIncoming, growIncoming, leaseMs } from "../blobs/incoming.ts"
import { createFile } from "../files/create-file.ts"
import { makeFiles } from "../files/files-service.ts"
import {
  chunks,
  type Fixture,
  field,
  filePart,
  formOf,
  openFixture,
  outcome,
  tenant,
} from "../testing/fixture.ts"
import { addPart } from "../uploads/add-part.ts"
import { completeUpload } from "../uploads/complete-upload.ts"
import { createUpload } from "../uploads/create-upload.ts"
import { orphanAgeMs, scheduleOrphans } from "./orphans.ts"
import { sweepsOf } from "./sweeper.ts"

const run = Effect.runPromise
let test: Fixture
let broken = false
beforeEach(async () => {
  broken = false
  const storage = fakeStorage()
  const failing: typeof storage.remove = (key) =>
    broken ? Effect.fail(new PortError({ port: "storage", message: "gone" })) : storage.remove(key)
  test = await openFixture({ ...storage, remove: failing })
})
afterEach(() => test?.close())

const make = () =>
  run(createFile(test.deps, tenant, formOf([filePart(100), field("purpose", "batch")])))
const sweepOrphans = () =>
  run(Effect.andThen(scheduleOrphans(test.deps), deleteDueBlobs(test.deps)))
const sweep = () => run(Effect.forEach(sweepsOf(test.deps), ({ work }) => work))

it("files past their time are gone at once, and their bytes and rows after", async () => {
  const { id } = await make()
  const files = makeFiles(test.deps)
  test.clock.advance(test.deps.limits.keepMs - 1)
  await sweep()
  expect(await run(files.find(tenant, id))).toMatchObject({ id, bytes: 100, status: "processed" })
  test.clock.advance(1)
  expect(await run(files.find(tenant, id))).toBeUndefined()
  await sweep()
  expect([await test.blobs(), (await test.quota()).said]).toEqual([[], 0n])
  test.clock.advance(30 * 24 * 3_600_000)
  await sweep()
  expect(await test.rowsOf("files_file")).toEqual([])
})

it("what a dead server left half-way goes when its lease ends; who comes too late has lost it", async () => {
  const incoming = await run(beginIncoming(test.deps, tenant))
  await run(growIncoming(test.deps, incoming, { need: 100, want: 900 }))
  await run(test.deps.storage.put(incoming.blobKey, chunks(100), 100))
  test.clock.advance(leaseMs - 1)
  await sweep()
  expect(await test.blobs()).toHaveLength(1)
  test.clock.advance(1)
  await sweep()
  expect([
    await test.blobs(),
    (await test.quota()).said,
    await test.rowsOf("files_incoming"),
  ]).toEqual([[], 0n, []])
  expect(
    await outcome(test.deps.database.transaction((tx) => endIncoming(test.deps, incoming, tx))),
  ).toBe("conflict")
  expect(await outcome(growIncoming(test.deps, incoming, { need: 1, want: 1 }))).toBe("conflict")
})

it("uploads end after an hour with their parts, and give their share back", async () => {
  const { id } = await run(
    createUpload(test.deps, tenant, {
      filename: "a",
      purpose: "batch_input",
      fileStatus: "uploaded",
      metadata: {},
      bytes: 500,
      keepMs: test.deps.limits.keepMs,
    }),
  )
  const part = await run(addPart(test.deps, tenant, id, formOf([filePart(500, "data")])))
  test.clock.advance(3_600_000 - 1)
  await sweep()
  expect(await test.blobs()).toHaveLength(1)
  test.clock.advance(1)
  expect(await outcome(completeUpload(test.deps, tenant, id, { part_ids: [part.id] }))).toBe(
    "conflict",
  )
  expect(await outcome(addPart(test.deps, tenant, id, formOf([filePart(500, "data")])))).toBe(
    "conflict",
  )
  await sweep()
  expect(await test.rowsOf("files_upload")).toMatchObject([{ status: "expired" }])
  expect([await test.blobs(), await test.rowsOf("files_part"), (await test.quota()).said]).toEqual([
    [],
    [],
    0n,
  ])
})

it("blobs that nobody names go after an hour, and no others", async () => {
  const files = makeFiles(test.deps)
  const kept = await make()
  const orphan = files.newBlobKey(tenant)
  await run(test.deps.storage.put(orphan, chunks(10), 10))
  await run(test.deps.storage.put("batches/of-others", chunks(10), 10))
  await run(test.deps.storage.put("files/odd", chunks(10), 10))
  const incoming = await run(beginIncoming(test.deps, tenant))
  await run(test.deps.storage.put(incoming.blobKey, chunks(10), 10))
  test.clock.advance(orphanAgeMs - 1)
  await sweepOrphans()
  expect(await test.blobs()).toContain(orphan)
  test.clock.advance(1)
  await sweepOrphans()
  expect([...(await test.blobs())].sort()).toEqual(
    ["batches/of-others", "files/odd", kept.blob_key, incoming.blobKey].sort(),
  )
})

it("bytes that can't be removed are tried again, and don't stop the others", async () => {
  const [one, two] = [await make(), await make()]
  broken = true
  expect(await run(makeFiles(test.deps).remove(tenant, one.id))).toBe(true)
  expect(await run(makeFiles(test.deps).find(tenant, one.id))).toBeUndefined()
  expect(await run(deleteDueBlobs(test.deps))).toBe(0)
  broken = false
  expect(await run(makeFiles(test.deps).remove(tenant, two.id))).toBe(true)
  expect(await test.blobs()).toEqual([one.blob_key])
  test.clock.advance(60_000)
  expect(await run(deleteDueBlobs(test.deps))).toBe(1)
  expect([await test.blobs(), await test.rowsOf("files_trash")]).toEqual([[], []])
})

it("a file made or removed in a transaction follows it", async () => {
  const files = makeFiles(test.deps)
  const { id } = await make()
  const blobKey = files.newBlobKey(tenant)
  await run(test.deps.storage.put(blobKey, chunks(20), 20))
  const fresh = {
    id: files.newId(),
    tenant,
    filename: "out.jsonl",
    purpose: "batch_output",
    blobKey,
    bytes: 20,
    expiresMs: test.clock.nowMs() + 1000,
  } as const
  const both = (end: Effect.Effect<void, "no">) =>
    test.deps.database.transaction((tx) =>
      files
        .create(fresh, tx)
        .pipe(Effect.andThen(files.remove(tenant, id, tx)), Effect.andThen(end)),
    )
  await run(Effect.ignore(both(Effect.fail("no"))))
  await run(deleteDueBlobs(test.deps))
  expect([
    (await run(files.find(tenant, id)))?.id,
    await run(files.find(tenant, fresh.id)),
  ]).toEqual([id, undefined])
  await run(both(Effect.void))
  expect([
    await run(files.find(tenant, id)),
    (await run(files.find(tenant, fresh.id)))?.purpose,
  ]).toEqual([undefined, "batch_output"])
  expect(await run(deleteDueBlobs(test.deps))).toBe(1)
  expect(await test.blobs()).toEqual([blobKey])
  expect(await run(files.mark(tenant, fresh.id, { status: "processed", details: "3 pages" }))).toBe(
    true,
  )
  expect(await run(files.find(tenant, fresh.id))).toMatchObject({
    status: "processed",
    statusDetails: "3 pages",
  })
  expect(await run(files.mark({ ...tenant, mode: "test" }, fresh.id, { status: "failed" }))).toBe(
    false,
  )
})
