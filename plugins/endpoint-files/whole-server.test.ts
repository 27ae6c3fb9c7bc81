import { createHash } from "node:crypto"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import pg from "pg"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../runtime/testing/start-platform.ts"

/** The official client against the whole server: real database, real disk. */
let platform: Platform
let live: OpenAI
let test: OpenAI
let other: OpenAI
let db: pg.Client

const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })

const askDashboard = async (path: string, token: string, body: unknown) => {
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) }
  const reply = await fetch(platform.url + path, { method: "POST", headers, body: JSON.stringify(body) })
  return (await reply.json()) as { token: string; key: string; id: string }
}

const makeOther = async (adminToken: string) => {
  const [email, password] = ["other@example.com", "correct horse battery"]
  const { id } = await askDashboard("/dashboard/signup", "", { email, password })
  await askDashboard(`/admin/accounts/${id}/verify`, adminToken, {})
  const { token } = await askDashboard("/dashboard/login", "", { email, password })
  return (await askDashboard("/dashboard/keys", token, { name: "k" })).key
}

beforeAll(async () => {
  platform = await startPlatform()
  const { email, password, api_key } = platform.credentials
  const { token } = await askDashboard("/dashboard/login", "", { email, password })
  live = clientOf(api_key)
  test = clientOf((await askDashboard("/dashboard/keys", token, { name: "sandbox", test: true })).key)
  other = clientOf(await makeOther(token))
  db = new pg.Client({ connectionString: platform.env.DATABASE_URL })
  await db.connect()
})
// one test that fails must not fail the others
afterEach(async () => {
  for (const { id } of (await live.files.list({ limit: 100 })).data) await live.files.delete(id)
})
afterAll(async () => {
  await db?.end()
  await platform?.close()
})

const blobs = (): readonly string[] => {
  const folder = join(platform.env.RAKIT_DATA!, "blobs")
  return (existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : []).filter((entry) => entry.isFile()).map(({ name }) => name)
}
const nothingLeft = async () => {
  expect(blobs()).toEqual([])
  for (const table of ["files_incoming", "files_trash", "files_part"]) expect([table, (await db.query(`SELECT * FROM ${table}`)).rows]).toEqual([table, []])
  expect((await db.query("SELECT sum(bytes) AS bytes, sum(files) AS files FROM files_usage")).rows).toEqual([{ bytes: "0", files: "0" }])
}
const errorOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (cause) => cause as { status: number; code: string; param: string | null },
  )
  return error && { status: error.status, code: error.code, param: error.param }
}
const jsonl = '{"custom_id":"a"}\n{"custom_id":"b"}\n'
const upload = (client = live, name = "in.jsonl", text = jsonl, purpose = "batch") => client.files.create({ file: new File([text], name), purpose: purpose as "batch" })
const raw = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
  fetch(`${platform.url}${path}`, { ...init, headers: { authorization: `Bearer ${platform.credentials.api_key}`, ...headers } })

describe("a file", () => {
  it("is uploaded, listed, read and deleted", async () => {
    const file = await upload()
    expect(file).toMatchObject({ object: "file", bytes: jsonl.length, filename: "in.jsonl", purpose: "batch_input", status: "uploaded" })
    expect(file.id).toMatch(/^file-\w+$/)
    expect(file.expires_at! - file.created_at).toBe(30 * 24 * 3600)
    expect(await live.files.retrieve(file.id)).toEqual(file)
    expect((await live.files.list()).data).toEqual([file])
    expect((await live.files.list({ purpose: "batch" })).data).toEqual([file])
    expect((await live.files.list({ purpose: "knowledge" })).data).toEqual([])
    expect(await (await live.files.content(file.id)).text()).toBe(jsonl)
    expect(blobs()).toHaveLength(1)
    expect(await live.files.delete(file.id)).toEqual({ id: file.id, object: "file", deleted: true, status: "deleted" })
    await nothingLeft()
    for (const gone of [() => live.files.retrieve(file.id), () => live.files.content(file.id), () => live.files.delete(file.id)])
      expect(await errorOf(gone())).toEqual({ status: 404, code: "not_found", param: null })
    expect((await live.files.list()).data).toEqual([])
  })

  it("is seen by its owner only, test and live apart", async () => {
    const file = await upload()
    for (const stranger of [test, other]) {
      expect(await errorOf(stranger.files.retrieve(file.id))).toMatchObject({ status: 404, code: "not_found" })
      expect(await errorOf(stranger.files.content(file.id))).toMatchObject({ status: 404 })
      expect(await errorOf(stranger.files.delete(file.id))).toMatchObject({ status: 404 })
      expect((await stranger.files.list()).data).toEqual([])
      expect(await errorOf(stranger.files.list({ after: file.id }))).toMatchObject({ status: 400, param: "after" })
    }
    await live.files.delete(file.id)
  })

  it("is read in parts, and not at all by who has it", async () => {
    const file = await upload(live, 'größe "x".jsonl', "0123456789")
    const path = `/v1/files/${file.id}/content`
    const whole = await raw(path)
    expect(whole.headers.get("content-disposition")).toBe("attachment; filename=\"gr__e _x_.jsonl\"; filename*=UTF-8''gr%C3%B6%C3%9Fe%20%22x%22.jsonl")
    expect(whole.headers.get("x-content-type-options")).toBe("nosniff")
    expect([whole.headers.get("accept-ranges"), whole.headers.get("content-length")]).toEqual(["bytes", "10"])
    await whole.text()
    const etag = whole.headers.get("etag")!
    const part = await raw(path, { range: "bytes=2-4", "if-range": etag })
    expect([part.status, part.headers.get("content-range"), await part.text()]).toEqual([206, "bytes 2-4/10", "234"])
    const suffix = await raw(path, { range: "bytes=-3" })
    expect([suffix.status, await suffix.text()]).toEqual([206, "789"])
    const behind = await raw(path, { range: "bytes=10-" })
    expect([behind.status, behind.headers.get("content-range"), ((await behind.json()) as { error: { code: string } }).error.code]).toEqual([
      416,
      "bytes */10",
      "range_not_satisfiable",
    ])
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
    expect(await (await raw("/v1/files?limit=2")).json()).toMatchObject({ object: "list", has_more: true, first_id: made[0], last_id: made[1] })
    expect((await live.files.list({ order: "asc", limit: 2 })).data.map(({ id }) => id)).toEqual(made.slice(3).reverse())
    const seen: string[] = []
    for await (const { id } of live.files.list({ limit: 2 })) {
      seen.push(id)
      await live.files.delete(id)
    }
    expect(seen).toEqual(made)
    for (const query of ["limit=0", "limit=101", "limit=x", "order=up", "purpose=fine-tune", "after=file-none", "after=%00"])
      expect([query, (await raw(`/v1/files?${query}`)).status]).toEqual([query, 400])
    await nothingLeft()
  })

  it("of knowledge is PDF, TXT or MD by name and content", async () => {
    const good = [
      ["a.pdf", "%PDF-1.7 ..."],
      ["a.TXT", "text"],
      ["a.md", "# text"],
    ] as const
    for (const [name, text] of good) await live.files.delete((await upload(live, name, text, "knowledge")).id)
    const bad = [
      ["a.docx", "PK"],
      ["a", "text"],
      ["a.pdf", "text"],
      ["a.txt", "%PDF-1.7"],
      ["a.md", "a\0b"],
    ] as const
    for (const [name, text] of bad)
      expect([name, await errorOf(upload(live, name, text, "knowledge"))]).toEqual([name, { status: 400, code: "unsupported_file_type", param: "file" }])
    await nothingLeft()
  })

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
      [form(["file", file], ["purpose", "batch"], ["expires_after[anchor]", "now"], ["expires_after[seconds]", "3600"]), "expires_after.anchor"],
      [form(["file", file], ["purpose", "batch"], ["expires_after[anchor]", "created_at"], ["expires_after[seconds]", "3599"]), "expires_after.seconds"],
      [form(["file", file], ["purpose", "batch"], ["expires_after[anchor]", "created_at"]), "expires_after.seconds"],
      [form(["file", file], ["purpose", "batch"], ["expires_after", "{}"]), "expires_after"],
    ]
    for (const [body, param] of cases) {
      const reply = await raw("/v1/files", {}, { method: "POST", body })
      const { error } = (await reply.json()) as { error: { code: string; param: string; message: string } }
      expect([param, reply.status, error]).toEqual([param, 400, expect.objectContaining({ code: "invalid_request_error", param })])
    }
    await nothingLeft()
  })

  it("may say when it expires, as the client has it", async () => {
    const file = await live.files.create({ file: new File(["x"], "folder/../a.jsonl"), purpose: "batch", expires_after: { anchor: "created_at", seconds: 3600 } })
    expect([file.filename, file.expires_at! - file.created_at]).toEqual(["a.jsonl", 3600])
    await live.files.delete(file.id)
  })

  it("is made once under an Idempotency-Key", async () => {
    const again = () => live.files.create({ file: new File(["x"], "a.jsonl"), purpose: "batch" }, { headers: { "Idempotency-Key": "once" } })
    const file = await again()
    expect((await again()).id).toBe(file.id)
    expect((await live.files.list()).data).toHaveLength(1)
    await live.files.delete(file.id)
  })

  it("over 50 MB is 413, and leaves nothing", async () => {
    const big = new File([Buffer.alloc(50 * 2 ** 20)], "a.jsonl")
    expect(await errorOf(live.files.create({ file: big, purpose: "batch" }))).toMatchObject({ status: 413, code: "payload_too_large" })
    // not announced: found out on the way
    let pieces = 0
    const streamed = new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from('--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n')),
      pull: (controller) => (++pieces > 52 ? controller.close() : controller.enqueue(Buffer.alloc(2 ** 20))),
    })
    const sent = raw("/v1/files", { "content-type": "multipart/form-data; boundary=x" }, { method: "POST", body: streamed, duplex: "half" } as RequestInit)
    expect((await sent).status).toBe(413)
    await expect.poll(blobs).toEqual([])
    await expect.poll(async () => (await db.query("SELECT 1 FROM files_incoming")).rowCount).toBe(0)
    await nothingLeft()
  })

  it("whose upload is cut leaves nothing", async () => {
    const stop = new AbortController()
    const started = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nsome bytes'))
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

describe("an upload in parts", () => {
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, n) => (n * 7919) % 251))
  const begin = (more: object = {}) => live.uploads.create({ filename: "big.jsonl", purpose: "batch", bytes: bytes.length, mime_type: "application/jsonl", ...more })
  const part = (id: string, data: Uint8Array) => toFile(data, "part").then((file) => live.uploads.parts.create(id, { data: file }))

  it("becomes a file, in the order that is asked for", async () => {
    const made = await begin()
    expect(made).toMatchObject({ object: "upload", status: "pending", bytes: bytes.length, filename: "big.jsonl", purpose: "batch_input", file: null })
    expect(made.expires_at - made.created_at).toBe(3600)
    const [last, first] = await Promise.all([part(made.id, bytes.subarray(100_000)), part(made.id, bytes.subarray(0, 100_000))])
    expect(first).toMatchObject({ object: "upload.part", upload_id: made.id })
    const md5 = createHash("md5").update(bytes).digest("hex")
    expect(await errorOf(live.uploads.complete(made.id, { part_ids: [last.id, first.id], md5 }))).toMatchObject({ status: 400, param: "md5" })
    const done = await live.uploads.complete(made.id, { part_ids: [first.id, last.id], md5 })
    expect(done).toMatchObject({ id: made.id, status: "completed", file: { bytes: bytes.length, filename: "big.jsonl", status: "uploaded" } })
    expect(Buffer.from(await (await live.files.content(done.file!.id)).arrayBuffer()).equals(bytes)).toBe(true)
    expect(blobs()).toHaveLength(1)
    for (const late of [() => part(made.id, bytes), () => live.uploads.complete(made.id, { part_ids: [first.id] }), () => live.uploads.cancel(made.id)])
      expect(await errorOf(late())).toMatchObject({ status: 409, code: "conflict" })
    await live.files.delete(done.file!.id)
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
    expect(await errorOf(begin({ bytes: 100 * 2 ** 20 + 1 }))).toEqual({ status: 413, code: "payload_too_large", param: "bytes" })
    for (const [more, param] of [
      [{ bytes: 0 }, "bytes"],
      [{ bytes: 1.5 }, "bytes"],
      [{ filename: "" }, "filename"],
      [{ filename: "a\ud800" }, "filename"],
      [{ purpose: "batch_output" }, "purpose"],
      [{ mime_type: undefined }, "mime_type"],
      [{ expires_after: { anchor: "created_at", seconds: 1 } }, "expires_after.seconds"],
    ] as const)
      expect([param, await errorOf(begin(more))]).toEqual([param, { status: 400, code: "invalid_request_error", param }])
    const [made, another] = [await begin(), await begin()]
    expect(await errorOf(part(made.id, new Uint8Array()))).toMatchObject({ status: 400, param: "data" })
    expect(await errorOf(part(made.id, Buffer.alloc(bytes.length + 1)))).toMatchObject({ status: 400, param: "data" })
    const [one, foreign] = [await part(made.id, bytes.subarray(1)), await part(another.id, bytes)]
    for (const [part_ids, param] of [
      [[], "part_ids"],
      [[one.id], "part_ids"],
      [[foreign.id], "part_ids[0]"],
      [[one.id, one.id], "part_ids[1]"],
    ] as const)
      expect([param, await errorOf(live.uploads.complete(made.id, { part_ids: [...part_ids] }))]).toEqual([param, { status: 400, code: "invalid_request_error", param }])
    for (const stranger of [test, other]) expect(await errorOf(stranger.uploads.cancel(made.id))).toMatchObject({ status: 404, code: "not_found" })
    for (const id of [made.id, another.id]) await live.uploads.cancel(id)
    await nothingLeft()
  })

  it("that is completed twice at once is completed once", async () => {
    const made = await begin()
    const { id } = await part(made.id, bytes)
    const ends = await Promise.all([1, 2, 3].map(() => errorOf(live.uploads.complete(made.id, { part_ids: [id] }))))
    expect(ends.filter((end) => end === undefined)).toHaveLength(1)
    expect(ends.filter((end) => end?.status === 409)).toHaveLength(2)
    const { data } = await live.files.list()
    expect(data).toHaveLength(1)
    await live.files.delete(data[0]!.id)
    await nothingLeft()
  })
})
