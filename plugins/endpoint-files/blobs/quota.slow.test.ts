import { Deferred, Effect, Fiber, Stream } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { fakeStorage } from "../../../testing/index.ts"
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
import { createUpload } from "../uploads/create-upload.ts"

let test: Fixture
beforeEach(async () => {
  test = await openFixture()
})
afterEach(() => test?.close())

const upload = (bytes: number, contentLength?: number, as = tenant) =>
  outcome(
    Effect.map(
      createFile(
        test.deps,
        as,
        formOf([filePart(bytes), field("purpose", "batch")], contentLength),
      ),
      () => "ok",
    ),
  )
const isEven = async () => {
  const { said, sum, files, count } = await test.quota()
  expect([said, files]).toEqual([sum, count])
  return Number(said)
}

describe("the quota", () => {
  it("fits to the byte, however the length was announced", async () => {
    expect(await upload(600)).toBe("ok")
    // the request with its form exceeds the quota, but the file fits
    expect(await upload(400, 700)).toBe("ok")
    expect(await isEven()).toBe(1000)
    expect(await upload(1)).toBe("storage_quota_exceeded")
    expect(await upload(1, 300)).toBe("storage_quota_exceeded")
    expect(await upload(0)).toBe("ok")
    expect(await isEven()).toBe(1000)
    expect(await test.rowsOf("files_incoming")).toEqual([])
    expect(await test.blobs()).toHaveLength(3)
  })

  it("is never passed by uploads at the same time, and none that fits is refused once the others are done", async () => {
    for (const announced of [undefined, 300]) {
      const ends = await Promise.all(Array.from({ length: 8 }, () => upload(250, announced)))
      const good = ends.filter((end) => end === "ok").length
      expect(ends.every((end) => end === "ok" || end === "storage_quota_exceeded")).toBe(true)
      expect(await isEven()).toBe(250 * good)
      expect(good).toBeLessThanOrEqual(4)
      while ((await isEven()) < 1000) expect(await upload(250, announced)).toBe("ok")
      for (const { id } of await test.rowsOf("files_file"))
        await Effect.runPromise(makeFiles(test.deps).remove(tenant, id as string))
      expect(await isEven()).toBe(0)
    }
    expect(await test.blobs()).toEqual([])
  })

  it("is of an account and a mode; what the server makes is outside", async () => {
    const files = makeFiles(test.deps)
    const blobKey = files.newBlobKey(tenant)
    await Effect.runPromise(test.deps.storage.put(blobKey, chunks(5000), 5000))
    const made = {
      id: files.newId(),
      tenant,
      filename: "out.jsonl",
      purpose: "batch_output",
      blobKey,
      bytes: 5000,
      expiresMs: test.clock.nowMs() + 1000,
    } as const
    await Effect.runPromise(files.create(made))
    for (const mode of ["live", "test"] as const) {
      const as = { ...tenant, mode }
      expect(await upload(600, undefined, as)).toBe("ok")
      expect(await upload(401, undefined, as)).toBe("storage_quota_exceeded")
    }
    expect(await Effect.runPromise(files.remove(tenant, made.id))).toBe(true)
    expect(await isEven()).toBe(1200)
  })

  it("counts uploads in parts from their creation", async () => {
    const begin = (bytes: number) =>
      outcome(
        Effect.map(
          createUpload(test.deps, tenant, {
            filename: "a",
            purpose: "batch_input",
            fileStatus: "uploaded",
            metadata: {},
            bytes,
            keepMs: test.deps.limits.keepMs,
          }),
          () => "ok",
        ),
      )
    expect(await Promise.all([begin(500), begin(500), begin(500)])).toEqual(
      expect.arrayContaining(["ok", "ok", "storage_quota_exceeded"]),
    )
    expect(await upload(1)).toBe("storage_quota_exceeded")
    expect(await isEven()).toBe(1000)
  })

  it("has room again after an upload that failed or was cut", async () => {
    expect(await upload(601)).toBe("payload_too_large")
    const reading = Deferred.makeUnsafe<void>()
    const endless = Stream.concat(
      chunks(500),
      Stream.fromEffectDrain(Effect.andThen(Deferred.succeed(reading, undefined), Effect.never)),
    )
    const fiber = Effect.runFork(createFile(test.deps, tenant, formOf([filePart(endless)])))
    await Effect.runPromise(Deferred.await(reading))
    expect(await isEven()).toBeGreaterThanOrEqual(500)
    await Effect.runPromise(Fiber.interrupt(fiber))
    expect(await isEven()).toBe(0)
    expect([
      await test.blobs(),
      await test.rowsOf("files_incoming"),
      await test.rowsOf("files_trash"),
    ]).toEqual([[], [], []])
  })
})

it("a full disk is said as such, and nothing is lost", async () => {
  const full = await openFixture(fakeStorage(700))
  const put = (bytes: number) =>
    outcome(
      Effect.map(
        createFile(full.deps, tenant, formOf([filePart(bytes), field("purpose", "batch")])),
        () => "ok",
      ),
    )
  expect(await put(500)).toBe("ok")
  expect(await put(300)).toBe("StorageFull")
  expect(await put(200)).toBe("ok")
  expect(await full.blobs()).toHaveLength(2)
  expect((await full.quota()).said).toBe(700n)
  await full.close()
})
