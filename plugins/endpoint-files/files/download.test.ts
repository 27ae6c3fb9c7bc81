import { Effect, Stream } from "effect"
import { afterEach, beforeEach, expect, it } from "vitest"
import type { PlanError, Reply } from "../../../core/index.ts"
import { fakeStorage } from "../../../testing/index.ts"
import { deleteDueBlobs } from "../blobs/deletion-queue.ts"
import {
  type Fixture,
  field,
  filePart,
  formOf,
  openFixture,
  outcome,
  tenant,
} from "../testing/fixture.ts"
import { createFile } from "./create-file.ts"
import { downloadFile } from "./download.ts"
import { makeFiles } from "./files-service.ts"

const run = Effect.runPromise
let test: Fixture
beforeEach(async () => {
  // as a disk does, it looks for the blob when the first byte is wanted
  const storage = fakeStorage()
  const get: typeof storage.get = (...of) => Stream.suspend(() => storage.get(...of))
  test = await openFixture({ ...storage, get })
})
afterEach(() => test?.close())

const make = () =>
  run(createFile(test.deps, tenant, formOf([filePart(100), field("purpose", "batch")])))

const read = (reply: Reply<PlanError>) =>
  outcome("bytes" in reply ? Stream.runDrain(reply.bytes) : Effect.void)

it("a file deleted before its first byte is read is not found", async () => {
  const { id } = await make()
  const reply = await run(downloadFile(test.deps, tenant, id))
  await run(makeFiles(test.deps).remove(tenant, id))
  await run(deleteDueBlobs(test.deps))
  expect(await test.blobs()).toEqual([])
  expect(await read(reply)).toBe("not_found")
})

it("a blob that is missing while its file is there is a fault of ours", async () => {
  const { id } = await make()
  const reply = await run(downloadFile(test.deps, tenant, id))
  const [key = ""] = await test.blobs()
  await run(test.deps.storage.remove(key))
  expect(await read(reply)).toBe("BlobMissing")
})
