import { existsSync } from "node:fs"
import { mkdir, readFile, stat, truncate, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { startFileServer } from "../../../../testing/files-server.ts"
import type { PullContext } from "../context.ts"
import { noise, setUp, sha256 } from "../testing/fixture.ts"
import { download } from "./download.ts"
import { validatorPath } from "./part-file.ts"

const { dir, server, context } = setUp()
const size = 1_000_000
const part = () => join(dir(), "model.part")

const run = (
  more: {
    url?: string
    sha256?: string
    isPinned?: boolean
    headers?: Record<string, string>
    context?: Partial<PullContext>
    signal?: AbortSignal
    report?: (done: number, total: number | undefined) => void
  } = {},
) =>
  download({
    context: context(more.context),
    file: {
      url: more.url ?? `${server().url}/model`,
      headers: more.headers ?? {},
      path: "model",
      sha256: more.sha256,
    },
    partPath: part(),
    isPinned: more.isPinned ?? true,
    extraRoom: 0,
    report: more.report ?? (() => {}),
    signal: more.signal ?? new AbortController().signal,
  })

const interruptedAt = async (
  bytes: number,
  body: Buffer,
  url = `${server().url}/model`,
  etag: string | undefined = '"v1"',
) => {
  await writeFile(part(), body.subarray(0, bytes))
  await writeFile(
    validatorPath(part()),
    JSON.stringify({ url, totalBytes: body.length, ...(etag && { etag }) }),
  )
}

describe("download", () => {
  it("goes on after a cut connection: Range and If-Range are sent, and no byte twice", async () => {
    const body = noise(size)
    server().file("/model", {
      body,
      etag: '"v1"',
      cut: (n) => (n < 2 ? { afterBytes: 300_000 } : undefined),
    })
    const result = await run({ sha256: sha256(body) })
    expect(result).toEqual({ sha256: sha256(body), bytes: size })
    expect(body.equals(await readFile(part()))).toBe(true)
    const [first, second, third] = server().seen
    expect(first?.headers.range).toBeUndefined()
    expect(second?.headers["if-range"]).toBe('"v1"')
    const kept = Number(/bytes=(\d+)-/.exec(second?.headers.range ?? "")?.[1])
    expect(kept).toBeGreaterThan(0)
    expect(third?.sentBytes).toBe(
      size - Number(/bytes=(\d+)-/.exec(third?.headers.range ?? "")?.[1]),
    )
  })

  it("goes on where an earlier process stopped", async () => {
    const body = noise(size)
    server().file("/model", { body, etag: '"v1"' })
    await interruptedAt(600_000, body)
    const reports: number[] = []
    await run({ sha256: sha256(body), report: (done) => reports.push(done) })
    expect(server().seen).toMatchObject([
      { headers: { range: "bytes=600000-", "if-range": '"v1"' }, sentBytes: 400_000 },
    ])
    expect(reports[0]).toBe(600_000)
    expect(reports.at(-1)).toBe(size)
  })

  it("starts from zero when the file changed meanwhile", async () => {
    const body = noise(size)
    server().file("/model", { body, etag: '"v2"' })
    await interruptedAt(600_000, noise(size))
    expect(await run({ sha256: sha256(body) })).toEqual({ sha256: sha256(body), bytes: size })
    expect(server().seen).toHaveLength(1)
    expect(JSON.parse(await readFile(validatorPath(part()), "utf8"))).toMatchObject({
      etag: '"v2"',
    })
  })

  it("starts from zero when the server knows no ranges", async () => {
    const body = noise(size)
    server().file("/model", { body, etag: '"v1"', noRanges: true })
    await interruptedAt(600_000, body)
    expect((await run()).sha256).toBe(sha256(body))
  })

  it("starts from zero when a server ignores If-Range and sends the tail of another version", async () => {
    const body = noise(size)
    server().handle("/model", (request, response) => {
      if (request.headers.range)
        response
          .writeHead(206, {
            "content-range": `bytes 600000-${size - 1}/${size}`,
            "content-length": 400_000,
          })
          .end(body.subarray(600_000))
      else response.writeHead(200, { "content-length": size }).end(body)
    })
    await interruptedAt(600_000, noise(size))
    expect((await run({ sha256: sha256(body) })).bytes).toBe(size)
  })

  it("does not build on a weak ETag; a pinned file resumes without any", async () => {
    const body = noise(size)
    server().file("/model", { body, etag: 'W/"v1"' })
    await interruptedAt(600_000, body, undefined, 'W/"v1"')
    await run()
    await interruptedAt(600_000, body, undefined, 'W/"v1"')
    await run({ sha256: sha256(body) })
    expect(server().seen.map(({ headers }) => [headers.range, headers["if-range"]])).toEqual([
      [undefined, undefined],
      ["bytes=600000-", undefined],
    ])
  })

  it("uses Last-Modified where there is no ETag", async () => {
    const body = noise(size)
    const lastModified = "Tue, 01 Sep 2026 10:00:00 GMT"
    server().file("/model", {
      body,
      lastModified,
      cut: (n) => (n === 0 ? { afterBytes: 300_000 } : undefined),
    })
    expect((await run()).sha256).toBe(sha256(body))
    expect(server().seen[1]?.headers["if-range"]).toBe(lastModified)
  })

  it("takes 416 with our length as complete, and with another length as a reason to start again", async () => {
    const body = noise(size)
    server().file("/model", { body, etag: '"v1"' })
    await interruptedAt(size, body)
    expect((await run()).sha256).toBe(sha256(body))
    expect(server().seen[0]?.headers.range).toBe(`bytes=${size}-`)
    await writeFile(part(), Buffer.concat([body, body]))
    expect((await run()).sha256).toBe(sha256(body))
  })

  it("asks nothing when the part is complete and right already", async () => {
    const body = noise(size)
    await interruptedAt(size, body)
    expect((await run({ sha256: sha256(body) })).bytes).toBe(size)
    expect(server().seen).toHaveLength(0)
  })

  it("takes a silent connection as broken", async () => {
    const body = noise(size)
    server().file("/model", {
      body,
      etag: '"v1"',
      cut: (n) => (n === 0 ? { afterBytes: 300_000, silent: true } : undefined),
    })
    expect((await run({ sha256: sha256(body) })).bytes).toBe(size)
    expect(server().seen).toHaveLength(2)
  })

  it("gives up after four failures in a row, says why, and keeps the part", async () => {
    const body = noise(size)
    server().file("/model", {
      body,
      etag: '"v1"',
      cut: (n) => ({ afterBytes: n === 0 ? 300_000 : 0 }),
    })
    await expect(run({ sha256: sha256(body) })).rejects.toThrow(/broke the connection/)
    expect(server().seen.length).toBeLessThanOrEqual(5)
    expect((await stat(part())).size).toBeGreaterThan(0)
  })

  it("retries 503, but not 404", async () => {
    const body = noise(1_000)
    let count = 0
    server().handle("/model", (_, response) =>
      count++ === 0
        ? response.writeHead(503, { "retry-after": "0" }).end()
        : response.writeHead(200).end(body),
    )
    expect((await run()).bytes).toBe(1_000)
    await expect(run({ url: `${server().url}/gone` })).rejects.toThrow(/gone answered 404/)
    expect(server().seen).toHaveLength(3)
  })

  it("throws away what has a wrong digest", async () => {
    server().file("/model", { body: noise(1_000) })
    const sha256 = "0".repeat(64)
    await expect(run({ sha256 })).rejects.toThrow(/has sha256 \w+, not the pinned 0{64}$/)
    await expect(run({ sha256, isPinned: false })).rejects.toThrow(/, not the 0{64} that its index/)
    expect(existsSync(part())).toBe(false)
    expect(existsSync(validatorPath(part()))).toBe(false)
  })

  it("tries once more from zero when the resumed bytes were bad", async () => {
    const body = noise(size)
    server().file("/model", { body, etag: '"v1"' })
    await interruptedAt(600_000, noise(size))
    expect((await run({ sha256: sha256(body) })).bytes).toBe(size)
    expect(server().seen.map(({ headers }) => headers.range)).toEqual(["bytes=600000-", undefined])
  })

  it("keeps the part when it is aborted", async () => {
    const body = noise(size)
    server().file("/model", { body, etag: '"v1"', pauseMs: 5 })
    const controller = new AbortController()
    const running = run({
      sha256: sha256(body),
      signal: controller.signal,
      report: (done) => done > 200_000 && controller.abort(),
    })
    await expect(running).rejects.toThrow(/abort/i)
    expect((await stat(part())).size).toBeGreaterThan(200_000)
    await run({ sha256: sha256(body) })
    expect(server().seen[1]?.headers["if-range"]).toBe('"v1"')
  })

  it("refuses before it fills the disk", async () => {
    server().file("/model", { body: noise(size) })
    await expect(run({ context: { freeBytes: async () => 500_000 } })).rejects.toThrow(
      /not enough room in .*: 1\.0 MB needed, 0\.5 MB free/,
    )
    expect((await stat(part())).size).toBe(0)
  })

  it("says what is wrong with a folder that can't be written", async () => {
    await mkdir(part())
    await expect(run()).rejects.toThrow(/can't write .*model\.part/)
  })

  it("survives a part that shrank or whose note is broken", async () => {
    const body = noise(size)
    server().file("/model", { body, etag: '"v1"' })
    await interruptedAt(600_000, body)
    await truncate(part(), 1)
    expect((await run({ sha256: sha256(body) })).bytes).toBe(size)
    await writeFile(validatorPath(part()), "{")
    expect((await run({ sha256: sha256(body) })).bytes).toBe(size)
    expect(server().seen[1]?.headers.range).toBeUndefined()
  })
})

describe("redirects", () => {
  it("are followed with all headers on the same host, without tokens to another", async () => {
    const body = noise(size)
    const other = await startFileServer()
    try {
      other.file("/cdn", { body, etag: '"v1"' })
      server().handle("/model", (_, response) =>
        response.writeHead(302, { location: "/second" }).end(),
      )
      server().handle("/second", (_, response) =>
        response.writeHead(307, { location: `${other.url}/cdn` }).end(),
      )
      await interruptedAt(600_000, body)
      expect((await run({ headers: { authorization: "Bearer secret" } })).sha256).toBe(sha256(body))
      expect(server().seen.map(({ headers }) => headers.authorization)).toEqual([
        "Bearer secret",
        "Bearer secret",
      ])
      expect(other.seen[0]?.headers).toMatchObject({ range: "bytes=600000-", "if-range": '"v1"' })
      expect(other.seen[0]?.headers.authorization).toBeUndefined()
    } finally {
      await other.close()
    }
  })

  it("end after ten", async () => {
    server().handle("/model", (_, response) =>
      response.writeHead(302, { location: "/model" }).end(),
    )
    await expect(run()).rejects.toThrow(/redirects more than 10 times/)
    expect(server().seen).toHaveLength(11)
  })

  it("turns a user and password in the address into a header, and shows them nowhere", async () => {
    const url = `${server().url.replace("//", "//me:s%23cret@")}/model?signature=hidden`
    server().handle("/model?signature=hidden", (_, response) => response.writeHead(403).end())
    const error: unknown = await run({ url }).catch((error: unknown) => error)
    expect(server().seen[0]?.headers.authorization).toBe(
      `Basic ${Buffer.from("me:s#cret").toString("base64")}`,
    )
    expect(String(error)).toContain("answered 403")
    expect(String(error)).not.toMatch(/cret|hidden/)
  })
})
