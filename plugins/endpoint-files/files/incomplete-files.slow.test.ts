import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { errorOf } from "../../../testing/dashboard-client.ts"
import { type FilesPlatform, openFilesPlatform } from "../testing/platform.ts"

let platform: FilesPlatform
let live: FilesPlatform["live"]
let db: FilesPlatform["db"]
let raw: FilesPlatform["raw"]
let blobs: FilesPlatform["blobs"]
let nothingLeft: FilesPlatform["nothingLeft"]
beforeAll(async () => {
  platform = await openFilesPlatform()
  ;({ live, db, raw, blobs, nothingLeft } = platform)
})
// one test that fails must not fail the others
afterEach(() => platform.deleteAll())
afterAll(() => platform?.close())

describe("the creation of a file", () => {
  it("that is wrong leaves nothing", async () => {
    const form = (...entries: readonly (readonly [string, string | File])[]) => {
      const body = new FormData()
      for (const [name, value] of entries) body.append(name, value)
      return body
    }
    const file = new File(["x"], "a.jsonl")
    const cases: readonly (readonly [FormData, string])[] = [
      [form(["file", file]), "purpose"],
      [form(["purpose", "batch"]), "file"],
      [form(["file", file], ["purpose", "fine-tune"]), "purpose"],
      [form(["purpose", "batch_output"], ["file", file]), "purpose"],
      [form(["file", file], ["purpose", "batch_error"]), "purpose"],
      [form(["file", file], ["purpose", "constructor"]), "purpose"],
      [form(["file", file], ["file", file], ["purpose", "batch"]), "file"],
      [form(["file", "text"], ["purpose", "batch"]), "file"],
      [form(["data", file], ["purpose", "batch"]), "data"],
      [form(["purpose", "batch"], ["purpose", "batch"], ["file", file]), "purpose"],
      [form(["file", new File(["x"], "..")], ["purpose", "batch"]), "file"],
      [form(["file", new File(["x"], "a\u0000b")], ["purpose", "batch"]), "file"],
      [form(["file", new File(["x"], "a\nb")], ["purpose", "batch"]), "file"],
      [form(["file", new File(["x"], "x".repeat(256))], ["purpose", "batch"]), "file"],
      [
        form(
          ["file", file],
          ["purpose", "batch"],
          ["expires_after[anchor]", "now"],
          ["expires_after[seconds]", "3600"],
        ),
        "expires_after.anchor",
      ],
      [
        form(
          ["file", file],
          ["purpose", "batch"],
          ["expires_after[anchor]", "created_at"],
          ["expires_after[seconds]", "3599"],
        ),
        "expires_after.seconds",
      ],
      [
        form(["file", file], ["purpose", "batch"], ["expires_after[anchor]", "created_at"]),
        "expires_after.seconds",
      ],
      [form(["file", file], ["purpose", "batch"], ["expires_after", "{}"]), "expires_after"],
    ]
    for (const [body, param] of cases) {
      const reply = await raw("/v1/files", {}, { method: "POST", body })
      const { error } = (await reply.json()) as {
        error: { code: string; param: string; message: string }
      }
      expect([param, reply.status, error]).toEqual([
        param,
        400,
        expect.objectContaining({ code: "invalid_request_error", param }),
      ])
    }
    await nothingLeft()
  })

  it("may say when it expires, as the client has it", async () => {
    const file = await live.files.create({
      file: new File(["x"], "folder/../a.jsonl"),
      purpose: "batch",
      expires_after: { anchor: "created_at", seconds: 3600 },
    })
    expect([file.filename, file.expires_at! - file.created_at]).toEqual(["a.jsonl", 3600])
    await live.files.delete(file.id)
  })

  it("is made once under an Idempotency-Key", async () => {
    const again = (text = "x", name = "a.jsonl") =>
      live.files.create(
        { file: new File([text], name), purpose: "batch" },
        { headers: { "Idempotency-Key": "once" } },
      )
    const file = await again()
    expect((await again()).id).toBe(file.id)
    const conflict = { status: 409, code: "conflict", param: "Idempotency-Key" }
    expect(await errorOf(again("y"))).toMatchObject(conflict)
    expect(await errorOf(again("x", "b.jsonl"))).toMatchObject(conflict)
    expect((await live.files.list()).data).toHaveLength(1)
    await live.files.delete(file.id)
  })

  it("over 50 MB is 413, and leaves nothing", async () => {
    const big = new File([Buffer.alloc(50 * 2 ** 20)], "a.jsonl")
    expect(await errorOf(live.files.create({ file: big, purpose: "batch" }))).toMatchObject({
      status: 413,
      code: "payload_too_large",
    })
    // without an announced length: found while it is read
    let pieces = 0
    const streamed = new ReadableStream({
      start: (controller) =>
        controller.enqueue(
          Buffer.from('--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'),
        ),
      pull: (controller) =>
        ++pieces > 52 ? controller.close() : controller.enqueue(Buffer.alloc(2 ** 20)),
    })
    const sent = raw("/v1/files", { "content-type": "multipart/form-data; boundary=x" }, {
      method: "POST",
      body: streamed,
      duplex: "half",
    } as RequestInit)
    expect((await sent).status).toBe(413)
    await expect.poll(blobs).toEqual([])
    await expect.poll(async () => (await db.query("SELECT 1 FROM files_incoming")).rowCount).toBe(0)
    await nothingLeft()
  })

  it("whose upload is cut leaves nothing", async () => {
    const stop = new AbortController()
    const started = new ReadableStream({
      start(controller) {
        controller.enqueue(
          Buffer.from(
            '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nsome bytes',
          ),
        )
        controller.enqueue(Buffer.alloc(200_000))
      },
      pull: () => new Promise(() => {}),
    })
    const sent = raw("/v1/files", { "content-type": "multipart/form-data; boundary=x" }, {
      method: "POST",
      body: started,
      duplex: "half",
      signal: stop.signal,
    } as RequestInit).catch(() => "cut")
    await expect.poll(() => blobs().length).toBe(1)
    stop.abort()
    expect(await sent).toBe("cut")
    await expect.poll(async () => (await db.query("SELECT 1 FROM files_incoming")).rowCount).toBe(0)
    await expect.poll(blobs).toEqual([])
    await expect.poll(async () => (await db.query("SELECT 1 FROM files_trash")).rowCount).toBe(0)
    await nothingLeft()
  })
})
