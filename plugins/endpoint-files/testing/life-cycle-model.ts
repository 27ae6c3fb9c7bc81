import { Effect, Stream } from "effect"
import fc from "fast-check"
import { expect } from "vitest"
import { apiError } from "../../../core/index.ts"
import { beginIncoming, growIncoming, leaseMs } from "../blobs/incoming.ts"
import { createFile } from "../files/create-file.ts"
import { getFile } from "../files/download.ts"
import { makeFiles } from "../files/files-service.ts"
import { sweepsOf } from "../sweep/sweeper.ts"
import { addPart } from "../uploads/add-part.ts"
import { cancelUpload } from "../uploads/close-upload.ts"
import { completeUpload } from "../uploads/complete-upload.ts"
import { createUpload, readUpload } from "../uploads/create-upload.ts"
import { chunks, type Fixture, field, filePart, formOf, outcome, tenant } from "./fixture.ts"

/**
 * The model: files and uploads by id, each with its bytes and its expiry. Everything visible, and
 * every counted byte, follows
 * from it. A step checks the outcome that the model predicts, so a wrong refusal fails as well as a
 * wrong success.
 */
interface Model {
  nowMs: number
  readonly files: Map<string, { readonly bytes: number; readonly endsMs: number }>
  readonly uploads: Map<
    string,
    {
      readonly bytes: number
      readonly endsMs: number
      parts: { readonly id: string; readonly bytes: number }[]
      status: string
    }
  >
  /** What servers that died left half-way. */
  halves: { readonly bytes: number; readonly endsMs: number }[]
}
const hourMs = 3_600_000
export const dayMs = 24 * hourMs

export type Step =
  | { readonly kind: "file" | "torn" | "upload" | "die"; readonly size: number }
  | {
      readonly kind: "part" | "complete" | "finish" | "cancel" | "delete"
      readonly pick: number
      readonly size: number
    }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "sweep" }

const size = fc.oneof(fc.integer({ min: 1, max: 500 }), fc.constantFrom(100, 300, 600, 601))
const pick = fc.nat(2)
export const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom(
      "file" as const,
      "torn" as const,
      "upload" as const,
      "upload" as const,
      "die" as const,
    ),
    size,
  }),
  fc.record({
    kind: fc.constantFrom(
      "part" as const,
      "part" as const,
      "complete" as const,
      "finish" as const,
      "cancel" as const,
      "delete" as const,
    ),
    pick,
    size,
  }),
  fc.record({
    kind: fc.constant("wait" as const),
    ms: fc.constantFrom(1000, leaseMs, hourMs / 2, hourMs, 20 * dayMs),
  }),
  fc.record({ kind: fc.constant("sweep" as const) }),
)

const held = (model: Model) => {
  const files = [...model.files.values()].reduce((sum, { bytes }) => sum + bytes, 0)
  const uploads = [...model.uploads.values()].reduce(
    (sum, { bytes, status }) => sum + (status === "pending" ? bytes : 0),
    0,
  )
  return files + uploads + model.halves.reduce((sum, { bytes }) => sum + bytes, 0)
}
const at = <A>(all: Iterable<A>, n: number): A | undefined => {
  const list = [...all]
  // the newest are those that have not expired
  return list.at(-1 - (n % Math.max(1, list.length)))
}

/** The number of uploads that were completed, over all runs. */
export const counts = { completed: 0 }
/** Runs steps against the plugin and the model, and compares the two. */
export const makeLifeCycle = (test: Fixture) => {
  const { deps } = test
  const model: Model = {
    nowMs: test.clock.nowMs(),
    files: new Map(),
    uploads: new Map(),
    halves: [],
  }
  const form = (bytes: number) => formOf([filePart(bytes), field("purpose", "batch")])
  const room = (bytes: number) => held(model) + bytes <= deps.limits.quotaBytes
  const isOpen = (id: string | undefined) => {
    const upload = id === undefined ? undefined : model.uploads.get(id)
    return upload && upload.status === "pending" && upload.endsMs > model.nowMs ? upload : undefined
  }

  const file = async (bytes: number) => {
    const wanted = bytes > deps.limits.maxFileBytes ? "payload_too_large" : "ok"
    const end = await outcome(createFile(deps, tenant, form(bytes)))
    if (typeof end === "string") {
      // one that is both too large for a file and for what is left may be refused for either reason
      expect(wanted === "ok" ? [room(bytes), end] : [false, end]).toEqual([
        false,
        wanted === "ok" || end === "storage_quota_exceeded" ? "storage_quota_exceeded" : wanted,
      ])
      return
    }
    expect([wanted, room(bytes)]).toEqual(["ok", true])
    model.files.set(end.id, { bytes, endsMs: model.nowMs + deps.limits.keepMs })
  }
  const torn = async (bytes: number) => {
    const body = Stream.concat(chunks(bytes), Stream.fail(apiError("invalid_request_error")))
    expect(["invalid_request_error", "storage_quota_exceeded", "payload_too_large"]).toContain(
      await outcome(createFile(deps, tenant, formOf([filePart(body)]))),
    )
  }
  const die = async (bytes: number) => {
    const fits = room(bytes)
    const incoming = await Effect.runPromise(beginIncoming(deps, tenant))
    const end = await outcome(growIncoming(deps, incoming, { need: bytes, want: bytes }))
    expect(end).toBe(fits ? bytes : "storage_quota_exceeded")
    await Effect.runPromise(deps.storage.put(incoming.blobKey, chunks(bytes), bytes))
    model.halves.push({ bytes: fits ? bytes : 0, endsMs: model.nowMs + leaseMs })
  }
  const upload = async (bytes: number) => {
    const end = await outcome(
      Effect.flatMap(
        readUpload(deps, { filename: "a", purpose: "batch", bytes, mime_type: "a/b" }),
        (upload) => createUpload(deps, tenant, upload),
      ),
    )
    if (bytes > deps.limits.maxFileBytes) return expect(end).toBe("payload_too_large")
    if (!room(bytes)) return expect(end).toBe("storage_quota_exceeded")
    if (typeof end === "string") throw new Error(end)
    model.uploads.set(end.id, { bytes, endsMs: model.nowMs + hourMs, parts: [], status: "pending" })
  }
  const part = async (n: number, bytes: number) => {
    const id = at(model.uploads.keys(), n)
    const end = await outcome(
      addPart(deps, tenant, id ?? "upload_none", formOf([filePart(bytes, "data")])),
    )
    if (id === undefined) return expect(end).toBe("not_found")
    const found = isOpen(id)
    if (!found) return expect(end).toBe("conflict")
    const all = found.parts.reduce((sum, one) => sum + one.bytes, bytes)
    if (bytes > found.bytes || all > 2 * found.bytes)
      return expect(end).toBe("invalid_request_error")
    if (typeof end === "string") throw new Error(end)
    found.parts.push({ id: end.id, bytes })
  }
  const missing = (n: number) => {
    const found = at(model.uploads.values(), n)
    return found
      ? Math.max(0, found.bytes - found.parts.reduce((sum, one) => sum + one.bytes, 0))
      : 0
  }
  const complete = async (n: number) => {
    const id = at(model.uploads.keys(), n)
    const found = isOpen(id)
    const parts = (id && model.uploads.get(id)?.parts) || []
    const end = await outcome(
      completeUpload(deps, tenant, id ?? "upload_none", {
        part_ids: parts.map((one) => one.id),
      }),
    )
    if (id === undefined) return expect(end).toBe("not_found")
    if (!found) return expect(end).toBe("conflict")
    if (parts.reduce((sum, one) => sum + one.bytes, 0) !== found.bytes)
      return expect(end).toBe("invalid_request_error")
    if (typeof end === "string") throw new Error(end)
    found.status = "completed"
    counts.completed += 1
    model.files.set(end.file.id, {
      bytes: found.bytes,
      endsMs: model.nowMs + deps.limits.keepMs,
    })
  }
  const cancel = async (n: number) => {
    const id = at(model.uploads.keys(), n)
    const found = isOpen(id)
    const end = await outcome(cancelUpload(deps, tenant, id ?? "upload_none"))
    if (!found) return expect(end).toBe(id === undefined ? "not_found" : "conflict")
    expect(end).toMatchObject({ status: "cancelled" })
    found.status = "cancelled"
  }
  const remove = async (n: number) => {
    const id = at(model.files.keys(), n)
    if (id === undefined) return
    expect(await outcome(makeFiles(deps).remove(tenant, id))).toBe(true)
    model.files.delete(id)
  }
  const sweep = async () => {
    await Effect.runPromise(Effect.forEach(sweepsOf(deps), ({ work }) => work))
    for (const [id, { endsMs }] of model.files) if (endsMs <= model.nowMs) model.files.delete(id)
    // an ended upload keeps its row for 30 days
    for (const [id, { status, endsMs }] of model.uploads)
      if (status !== "pending" && endsMs <= model.nowMs - 30 * dayMs) model.uploads.delete(id)
    for (const one of model.uploads.values())
      if (one.status === "pending" && one.endsMs <= model.nowMs) one.status = "expired"
    model.halves = model.halves.filter(({ endsMs }) => endsMs > model.nowMs)
  }
  const run = (todo: Step): unknown => {
    switch (todo.kind) {
      case "file":
        return file(todo.size)
      case "torn":
        return torn(todo.size)
      case "die":
        return die(todo.size)
      case "upload":
        return upload(todo.size)
      case "part":
        return part(todo.pick, todo.size % 3 ? missing(todo.pick) || todo.size : todo.size)
      case "finish":
        return Promise.resolve(part(todo.pick, missing(todo.pick) || todo.size)).then(() =>
          complete(todo.pick),
        )
      case "complete":
        return complete(todo.pick)
      case "cancel":
        return cancel(todo.pick)
      case "delete":
        return remove(todo.pick)
      case "wait":
        test.clock.advance(todo.ms)
        model.nowMs += todo.ms
        return undefined
      case "sweep":
        return sweep()
    }
  }
  const check = async () => {
    const { said, sum, files, count } = await test.quota()
    expect([Number(said), Number(sum), files]).toEqual([held(model), held(model), count])
    for (const [id, { bytes, endsMs }] of model.files) {
      const end = await outcome(getFile(deps, tenant, id))
      if (endsMs <= model.nowMs) expect(end).toBe("not_found")
      else expect(end).toMatchObject({ bytes: BigInt(bytes) })
    }
    const parts = [...model.uploads.values()].reduce(
      (all, one) => all + (one.status === "pending" ? one.parts.length : 0),
      0,
    )
    expect((await test.blobs()).length).toBe(model.files.size + parts + model.halves.length)
  }
  return { run, check, sweep }
}
