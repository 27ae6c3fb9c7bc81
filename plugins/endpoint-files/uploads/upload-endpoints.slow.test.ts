import { createHash } from "node:crypto"
import { toFile } from "openai"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { errorOf } from "../../../testing/dashboard-client.ts"
import { type FilesPlatform, openFilesPlatform } from "../testing/platform.ts"

let platform: FilesPlatform
let live: FilesPlatform["live"]
let strangers: readonly FilesPlatform["live"][]
let blobs: FilesPlatform["blobs"]
let nothingLeft: FilesPlatform["nothingLeft"]
beforeAll(async () => {
  platform = await openFilesPlatform()
  ;({ live, blobs, nothingLeft } = platform)
  strangers = [platform.test, platform.other]
})
// one test that fails must not fail the others
afterEach(() => platform.deleteAll())
afterAll(() => platform?.close())

describe("an upload in parts", () => {
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, n) => (n * 7919) % 251))
  const begin = (more: object = {}) =>
    live.uploads.create({
      filename: "big.jsonl",
      purpose: "batch",
      bytes: bytes.length,
      mime_type: "application/jsonl",
      ...more,
    })
  const retrieve = async (id: string) => (await platform.raw(`/v1/uploads/${id}`)).json()
  const part = (id: string, data: Uint8Array) =>
    toFile(data, "part").then((file) => live.uploads.parts.create(id, { data: file }))

  it("becomes a file, in the order that is asked for", async () => {
    const made = await begin()
    expect(made).toMatchObject({
      object: "upload",
      status: "pending",
      bytes: bytes.length,
      filename: "big.jsonl",
      purpose: "batch_input",
      file: null,
    })
    expect(made.expires_at - made.created_at).toBe(3600)
    const [last, first] = await Promise.all([
      part(made.id, bytes.subarray(100_000)),
      part(made.id, bytes.subarray(0, 100_000)),
    ])
    expect(first).toMatchObject({ object: "upload.part", upload_id: made.id })
    const md5 = createHash("md5").update(bytes).digest("hex")
    expect(
      await errorOf(live.uploads.complete(made.id, { part_ids: [last.id, first.id], md5 })),
    ).toMatchObject({ status: 400, param: "md5" })
    const done = await live.uploads.complete(made.id, { part_ids: [first.id, last.id], md5 })
    expect(done).toMatchObject({
      id: made.id,
      status: "completed",
      file: { bytes: bytes.length, filename: "big.jsonl", status: "processed" },
    })
    expect(
      Buffer.from(await (await live.files.content(done.file!.id)).arrayBuffer()).equals(bytes),
    ).toBe(true)
    expect(blobs()).toHaveLength(1)
    for (const late of [
      () => part(made.id, bytes),
      () => live.uploads.complete(made.id, { part_ids: [first.id] }),
      () => live.uploads.cancel(made.id),
    ])
      expect(await errorOf(late())).toMatchObject({ status: 409, code: "conflict" })
    expect(await retrieve(made.id)).toEqual(done)
    await live.files.delete(done.file!.id)
    expect(await retrieve(made.id)).toMatchObject({ status: "completed", file: null })
    await nothingLeft()
  })

  it("takes the parts of 64 MB that official clients send, and no larger ones", async () => {
    const [most, whole] = [Buffer.alloc(64 * 2 ** 20, "p"), 70 * 2 ** 20]
    const made = await begin({ bytes: whole })
    expect(await errorOf(part(made.id, Buffer.alloc(most.length + 1)))).toEqual({
      status: 413,
      code: "payload_too_large",
      param: "data",
    })
    const ids = [
      (await part(made.id, most)).id,
      (await part(made.id, most.subarray(0, whole - most.length))).id,
    ]
    const done = await live.uploads.complete(made.id, { part_ids: ids })
    expect(done.file!.bytes).toBe(whole)
    await live.files.delete(done.file!.id)
    await nothingLeft()
  })

  it("is judged in a dry run like a real one, and not begun", async () => {
    const dry = (purpose: "batch" | "vision") =>
      live.uploads.create(
        { filename: "a", purpose, bytes: 5, mime_type: "" },
        { headers: { "x-dry-run": "1" } },
      )
    expect(await dry("batch")).toMatchObject({ object: "dry_run", would_succeed: true })
    expect(await errorOf(dry("vision"))).toMatchObject({ status: 400, param: "purpose" })
    await nothingLeft()
  })

  it("is cancelled, and leaves nothing", async () => {
    const made = await begin()
    await part(made.id, bytes)
    expect(await live.uploads.cancel(made.id)).toMatchObject({ status: "cancelled" })
    expect(await errorOf(live.uploads.cancel(made.id))).toMatchObject({ status: 409 })
    await nothingLeft()
  })

  it("is refused where it is wrong", async () => {
    expect(await errorOf(begin({ bytes: 100 * 2 ** 20 + 1 }))).toEqual({
      status: 413,
      code: "payload_too_large",
      param: "bytes",
    })
    for (const [more, param] of [
      [{ bytes: 0 }, "bytes"],
      [{ bytes: 1.5 }, "bytes"],
      [{ filename: "" }, "filename"],
      [{ filename: "a\ud800" }, "filename"],
      [{ purpose: "batch_output" }, "purpose"],
      [{ mime_type: undefined }, "mime_type"],
      [{ expires_after: { anchor: "created_at", seconds: 1 } }, "expires_after.seconds"],
      [{ expires_after: { anchor: "now", seconds: 3600 } }, "expires_after.anchor"],
      [{ expires_after: { seconds: 3600 } }, "expires_after.anchor"],
    ] as const)
      expect([param, await errorOf(begin(more))]).toEqual([
        param,
        { status: 400, code: "invalid_request_error", param },
      ])
    expect(await errorOf(begin({ purpose: "knowledge" }))).toEqual({
      status: 400,
      code: "unsupported_file_type",
      param: "filename",
    })
    const [made, another] = [await begin(), await begin()]
    expect(await errorOf(part(made.id, new Uint8Array()))).toMatchObject({
      status: 400,
      param: "data",
    })
    expect(await errorOf(part(made.id, Buffer.alloc(bytes.length + 1)))).toMatchObject({
      status: 400,
      param: "data",
    })
    const [one, foreign] = [await part(made.id, bytes.subarray(1)), await part(another.id, bytes)]
    for (const [part_ids, param] of [
      [[], "part_ids"],
      [[one.id], "part_ids"],
      [[foreign.id], "part_ids[0]"],
      [[one.id, one.id], "part_ids[1]"],
    ] as const)
      expect([
        param,
        await errorOf(live.uploads.complete(made.id, { part_ids: [...part_ids] })),
      ]).toEqual([param, { status: 400, code: "invalid_request_error", param }])
    for (const stranger of strangers)
      expect(await errorOf(stranger.uploads.cancel(made.id))).toMatchObject({
        status: 404,
        code: "not_found",
      })
    for (const id of [made.id, another.id]) await live.uploads.cancel(id)
    await nothingLeft()
  })

  it("that is not what its name says is refused at its end, and can be cancelled", async () => {
    const made = await begin({ filename: "a.pdf", purpose: "knowledge" })
    const { id } = await part(made.id, bytes)
    expect(await errorOf(live.uploads.complete(made.id, { part_ids: [id] }))).toEqual({
      status: 400,
      code: "unsupported_file_type",
      param: "part_ids",
    })
    await live.uploads.cancel(made.id)
    await nothingLeft()
  })

  it("that is completed twice at once is completed once", async () => {
    const made = await begin()
    const { id } = await part(made.id, bytes)
    const ends = await Promise.all(
      [1, 2, 3].map(() => errorOf(live.uploads.complete(made.id, { part_ids: [id] }))),
    )
    expect(ends.filter((end) => end === undefined)).toHaveLength(1)
    expect(ends.filter((end) => end?.status === 409)).toHaveLength(2)
    const { data } = await live.files.list()
    expect(data).toHaveLength(1)
    await live.files.delete(data[0]!.id)
    await nothingLeft()
  })
})
