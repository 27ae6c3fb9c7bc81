import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { errorOf } from "../../../testing/dashboard-client.ts"
import { type FilesPlatform, openFilesPlatform } from "../testing/platform.ts"

let platform: FilesPlatform
let live: FilesPlatform["live"]
let strangers: readonly FilesPlatform["live"][]
let db: FilesPlatform["db"]
let raw: FilesPlatform["raw"]
let blobs: FilesPlatform["blobs"]
let nothingLeft: FilesPlatform["nothingLeft"]
beforeAll(async () => {
  platform = await openFilesPlatform()
  ;({ live, db, raw, blobs, nothingLeft } = platform)
  strangers = [platform.test, platform.other]
})
// one test that fails must not fail the others
afterEach(() => platform.deleteAll())
afterAll(() => platform?.close())

const jsonl = '{"custom_id":"a"}\n{"custom_id":"b"}\n'
const upload = (
  client = live,
  name = "in.jsonl",
  text: string | Buffer<ArrayBuffer> = jsonl,
  purpose = "batch",
) => client.files.create({ file: new File([text], name), purpose: purpose as "batch" })

describe("a file", () => {
  it("is uploaded, listed, read and deleted", async () => {
    const file = await upload()
    expect(file).toMatchObject({
      object: "file",
      bytes: jsonl.length,
      filename: "in.jsonl",
      purpose: "batch_input",
      status: "processed",
    })
    expect(file.id).toMatch(/^file-\w+$/)
    expect(file.expires_at! - file.created_at).toBe(30 * 24 * 3600)
    expect(await live.files.retrieve(file.id)).toEqual(file)
    expect((await live.files.list()).data).toEqual([file])
    expect((await live.files.list({ purpose: "batch" })).data).toEqual([file])
    expect((await live.files.list({ purpose: "knowledge" })).data).toEqual([])
    expect(await (await live.files.content(file.id)).text()).toBe(jsonl)
    expect(blobs()).toHaveLength(1)
    expect(await live.files.delete(file.id)).toEqual({
      id: file.id,
      object: "file",
      deleted: true,
      status: "deleted",
    })
    await nothingLeft()
    for (const gone of [
      () => live.files.retrieve(file.id),
      () => live.files.content(file.id),
      () => live.files.delete(file.id),
    ])
      expect(await errorOf(gone())).toEqual({ status: 404, code: "not_found", param: null })
    expect((await live.files.list()).data).toEqual([])
  })

  it("is processed at once under OpenAI's name of the purpose, so waiting for it ends", async () => {
    const file = await upload()
    expect(await live.files.waitForProcessing(file.id, { pollInterval: 1 })).toEqual(file)
    expect(await upload(live, "in.jsonl", jsonl, "batch_input")).toMatchObject({
      purpose: "batch_input",
      status: "uploaded",
    })
  })

  it("is seen by its owner only, test and live apart", async () => {
    const file = await upload()
    for (const stranger of strangers) {
      expect(await errorOf(stranger.files.retrieve(file.id))).toMatchObject({
        status: 404,
        code: "not_found",
      })
      expect(await errorOf(stranger.files.content(file.id))).toMatchObject({ status: 404 })
      expect(await errorOf(stranger.files.delete(file.id))).toMatchObject({ status: 404 })
      expect((await stranger.files.list()).data).toEqual([])
      expect(await errorOf(stranger.files.list({ after: file.id }))).toMatchObject({
        status: 400,
        param: "after",
      })
    }
    await live.files.delete(file.id)
  })

  it("is read in parts, and not at all by who has it", async () => {
    const file = await upload(live, 'größe "x".jsonl', "0123456789")
    const path = `/v1/files/${file.id}/content`
    const whole = await raw(path)
    expect(whole.headers.get("content-disposition")).toBe(
      "attachment; filename=\"gr__e _x_.jsonl\"; filename*=UTF-8''gr%C3%B6%C3%9Fe%20%22x%22.jsonl",
    )
    expect(whole.headers.get("x-content-type-options")).toBe("nosniff")
    expect([whole.headers.get("accept-ranges"), whole.headers.get("content-length")]).toEqual([
      "bytes",
      "10",
    ])
    await whole.text()
    const etag = whole.headers.get("etag")!
    const part = await raw(path, { range: "bytes=2-4", "if-range": etag })
    expect([part.status, part.headers.get("content-range"), await part.text()]).toEqual([
      206,
      "bytes 2-4/10",
      "234",
    ])
    const suffix = await raw(path, { range: "bytes=-3" })
    expect([suffix.status, await suffix.text()]).toEqual([206, "789"])
    const behind = await raw(path, { range: "bytes=10-" })
    expect([
      behind.status,
      behind.headers.get("content-range"),
      ((await behind.json()) as { error: { code: string } }).error.code,
    ]).toEqual([416, "bytes */10", "range_not_satisfiable"])
    expect((await raw(path, { "if-none-match": etag })).status).toBe(304)
    await live.files.delete(file.id)
  })

  it("may be empty", async () => {
    const file = await upload(live, "empty.jsonl", "")
    expect(file.bytes).toBe(0)
    const reply = await raw(`/v1/files/${file.id}/content`)
    expect([reply.status, await reply.text()]).toEqual([200, ""])
    await live.files.delete(file.id)
  })

  it("is found page by page, also when each is deleted as it comes", async () => {
    const made: string[] = []
    for (let n = 0; n < 5; n++) made.unshift((await upload(live, `${n}.jsonl`)).id)
    const first = await live.files.list({ limit: 2 })
    expect(first.data.map(({ id }) => id)).toEqual(made.slice(0, 2))
    expect(await (await raw("/v1/files?limit=2")).json()).toMatchObject({
      object: "list",
      has_more: true,
      first_id: made[0],
      last_id: made[1],
    })
    expect((await live.files.list({ order: "asc", limit: 2 })).data.map(({ id }) => id)).toEqual(
      made.slice(3).reverse(),
    )
    const seen: string[] = []
    for await (const { id } of live.files.list({ limit: 2 })) {
      seen.push(id)
      await live.files.delete(id)
    }
    expect(seen).toEqual(made)
    for (const query of [
      "limit=0",
      "limit=101",
      "limit=x",
      "order=up",
      "purpose=fine-tune",
      "after=file-none",
      "after=%00",
    ])
      expect([query, (await raw(`/v1/files?${query}`)).status]).toEqual([query, 400])
    await nothingLeft()
  })

  it("of knowledge is PDF, TXT, MD, HTML, DOCX or CSV by name and content", async () => {
    const good = [
      ["a.pdf", "%PDF-1.7 ..."],
      ["a.TXT", "text"],
      ["a.md", "# text"],
      ["a.html", "<p>text</p>"],
      ["a.HTM", "<p>text</p>"],
      ["a.csv", "a,b\n1,2\n"],
      ["latin1.html", Buffer.from('<meta charset="latin1">gr\xf6\xdfe', "latin1")],
      ["a.docx", "PK\x03\x04..."],
      ["encrypted.docx", Buffer.from("\xd0\xcf\x11\xe0\xa1\xb1", "latin1")],
      ["empty.pdf", ""],
    ] as const
    for (const [name, text] of good)
      await live.files.delete((await upload(live, name, text, "knowledge")).id)
    const bad = [
      ["a.docx", "text"],
      ["a.docx", "PK"],
      ["a.doc", "\xd0\xcf"],
      ["a.csv", "a\0b"],
      ["a.html", "%PDF-1.7"],
      ["image.html", Buffer.from("\x89PNG\r\n\x1a\n\0\0", "latin1")],
      ["a", "text"],
      ["a.pdf", "text"],
      ["a.txt", "%PDF-1.7"],
      ["a.md", "a\0b"],
      ["latin1.txt", Buffer.from("gr\xf6\xdfe", "latin1")],
    ] as const
    for (const [name, text] of bad)
      expect([name, await errorOf(upload(live, name, text, "knowledge"))]).toEqual([
        name,
        { status: 400, code: "unsupported_file_type", param: "file" },
      ])
    await live.files.delete((await upload(live, "cut.txt", "ä".repeat(600), "knowledge")).id)
    await live.files.delete(
      (await upload(live, "cut within.txt", `a${"ä".repeat(600)}`, "knowledge")).id,
    )
    await nothingLeft()
  })

  it("is filed under the metadata that the official client sends, also through an upload", async () => {
    const metadata = { team: "sales", año: "2026 🙂" }
    const params = { file: new File(["text"], "a.txt"), purpose: "knowledge", metadata }
    const file = await live.files.create(params as never)
    expect(file).toMatchObject({ metadata })
    expect((await live.files.list()).data).toMatchObject([{ id: file.id, metadata }])
    const made = await live.uploads.create({
      ...{ bytes: 4, filename: "b.txt", mime_type: "text/plain", purpose: "knowledge" as "batch" },
      ...{ metadata },
    })
    const part = await live.uploads.parts.create(made.id, { data: new File(["text"], "b.txt") })
    const done = await live.uploads.complete(made.id, { part_ids: [part.id] })
    expect(done.file).toMatchObject({ filename: "b.txt", metadata })
    for (const { id } of [file, done.file!])
      expect(await live.files.waitForProcessing(id, { pollInterval: 50 })).toMatchObject({
        status: "processed",
        progress: { chunks: 1 },
      })
    const wrong = live.files.create({ ...params, metadata: { a: "x".repeat(513) } } as never)
    expect(await errorOf(wrong)).toMatchObject({ status: 400, param: "metadata.a" })
  })

  it("is judged in a dry run like a real one, and not kept", async () => {
    const dry = async (purpose: string, name = "a.jsonl") => {
      const body = new FormData()
      body.append("file", new File(["x".repeat(300_000)], name))
      body.append("purpose", purpose)
      const reply = await raw("/v1/files", { "x-dry-run": "1" }, { method: "POST", body })
      return { status: reply.status, json: await reply.json() }
    }
    expect(await dry("batch")).toMatchObject({
      status: 200,
      json: { object: "dry_run", cost_idr: 0, would_succeed: true },
    })
    expect(await dry("fine-tune")).toMatchObject({
      status: 400,
      json: { error: { param: "purpose" } },
    })
    expect(await dry("knowledge")).toMatchObject({
      status: 400,
      json: { error: { code: "unsupported_file_type" } },
    })
    await db.query("UPDATE files_usage SET bytes = bytes + 1073741824")
    expect(await dry("batch")).toMatchObject({ status: 200, json: { would_succeed: false } })
    await db.query("UPDATE files_usage SET bytes = bytes - 1073741824")
    await nothingLeft()
  })
})
