import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { fakeLog } from "../../testing/fakes/log.ts"
import { noS3Server, type S3Server, startS3Server } from "../../testing/s3-server.ts"
import { checkStore, makeCheck } from "./probe.ts"
import { makeS3Storage } from "./s3-storage.ts"
import { openStore } from "./store.ts"
import { type Scripted, startRecorder, startRefusing } from "./testing/scripted.ts"
import { freshStore, settingsFor } from "./testing/store.ts"

vi.setConfig({ testTimeout: 60_000 })

const run = Effect.runPromise
const roomy = 2 ** 30
const text = (said: string) => Stream.make(new Uint8Array(Buffer.from(said)))
const megabytes = (count: number) =>
  Stream.range(1, count).pipe(Stream.map((n) => new Uint8Array(2 ** 20).fill(n)))

describe.skipIf(noS3Server() !== undefined)("requests to a store", () => {
  let server: S3Server
  const closers: (() => Promise<unknown> | unknown)[] = []
  beforeAll(async () => {
    server = await startS3Server()
  })
  afterAll(() => server.close())
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })
  const closing = async (opening: Promise<Scripted>) => {
    const scripted = await opening
    closers.push(scripted.close)
    return scripted
  }
  const through = async (
    more: Parameters<typeof freshStore>[1],
    refuse?: (nth: number) => string | undefined,
  ) => {
    const recorder = await closing(startRecorder(server.endpoint, refuse))
    return { ...recorder, store: freshStore(server, { endpoint: recorder.endpoint, ...more }) }
  }
  const textIn = async (storage: ReturnType<typeof makeS3Storage>, key: string) =>
    Buffer.concat(await run(Stream.runCollect(storage.get(key)))).toString()

  it("carry encryption and storage class with every object that they make, and no other", async () => {
    const { store, seen } = await through({
      serverSideEncryption: "AES256",
      storageClass: "STANDARD_IA",
    })
    await run(checkStore(store, fakeLog()))
    const storage = makeS3Storage(store)
    await run(storage.put("one", text("one"), roomy))
    await run(storage.put("parts", megabytes(20), roomy))
    await run(Stream.runDrain(storage.get("parts")))
    await run(storage.remove("one"))
    const makes = ({ method, url }: { method: string; url: string }) =>
      (method === "PUT" && !url.includes("partNumber")) ||
      (method === "POST" && /[?&]uploads/.test(url))
    const headers = (wanted: boolean) =>
      seen
        .filter((request) => makes(request) === wanted)
        .map(({ headers }) => [
          headers["x-amz-server-side-encryption"],
          headers["x-amz-storage-class"],
        ])
    // the probe, the small one and the one in parts
    expect(headers(true)).toEqual(Array(3).fill(["AES256", "STANDARD_IA"]))
    expect(headers(false).length).toBeGreaterThan(6)
    expect(new Set(headers(false).flat())).toEqual(new Set([undefined]))
    expect(seen.map(({ url }) => url).join()).not.toContain(server.secretAccessKey)
  })

  it("carry neither where none is set", async () => {
    const { store, seen } = await through({})
    await run(makeS3Storage(store).put("one", text("one"), roomy))
    expect(seen.flatMap(({ headers }) => Object.keys(headers))).not.toContain("x-amz-storage-class")
    expect(seen.flatMap(({ headers }) => Object.keys(headers))).not.toContain(
      "x-amz-server-side-encryption",
    )
  })

  it("go on through a few refusals of a store that asks for fewer", async () => {
    const { store, seen } = await through({ attempts: 4 }, (nth) =>
      nth % 3 === 1 ? "SlowDown" : undefined,
    )
    const storage = makeS3Storage(store)
    for (const key of ["a", "b", "c"]) await run(storage.put(key, text(key), roomy))
    expect(await textIn(storage, "b")).toBe("b")
    expect(seen.length).toBeLessThanOrEqual(8)
  })

  it("end when the retries that all of them share are used up", async () => {
    const { endpoint, seen } = await closing(startRefusing("SlowDown"))
    const store = openStore(settingsFor(server, "any", { endpoint, attempts: 4, retryBudget: 5 }))
    const storage = makeS3Storage(store)
    const failure = async () =>
      run(Effect.flip(storage.put("k", text("k"), roomy) as Effect.Effect<unknown, object>))
    const counts: number[] = []
    for (let n = 0; n < 4; n++) {
      const before = seen.length
      expect(await failure()).toMatchObject({
        ...{ _tag: "PortError", why: "unavailable" },
        message: expect.stringContaining("it asks for fewer requests (SlowDown, 503)"),
      })
      counts.push(seen.length - before)
    }
    expect(counts).toEqual([4, 3, 1, 1])
    expect(await run(Effect.flip(makeCheck(store, fakeLog()).check))).toContain("SlowDown")
  })

  it("name clocks that differ where the store minds, at start and in /readyz", async () => {
    const { endpoint } = await closing(startRefusing("RequestTimeTooSkewed"))
    const store = openStore(settingsFor(server, "any", { endpoint, attempts: 2 }))
    const named = "the clocks of this machine and of the store differ too much"
    expect((await run(Effect.flip(checkStore(store, fakeLog())))).message).toContain(named)
    expect(await run(Effect.flip(makeCheck(store, fakeLog()).check))).toContain(named)
  })

  it("put on a condition, whole and in parts: the loser changes nothing", async () => {
    const storage = makeS3Storage(freshStore(server))
    for (const [key, body] of [
      ["small", text("first")],
      ["large", megabytes(12)],
    ] as const) {
      const first = await run(storage.put(key, body, roomy, { ifNoneMatch: "*" }))
      const loses = (condition: Parameters<typeof storage.put>[3]) =>
        run(
          Effect.flip(
            storage.put(key, text("loser"), roomy, condition) as Effect.Effect<unknown, object>,
          ),
        )
      expect(await loses({ ifNoneMatch: "*" })).toMatchObject({
        ...{ _tag: "PortError" },
        message: expect.stringContaining("412"),
      })
      expect(await loses({ ifMatch: "00000000000000000000000000000000" })).toMatchObject({
        _tag: "PortError",
      })
      expect(await run(storage.stat(key))).toEqual(first)
      await run(storage.put(key, text("second"), roomy, { ifMatch: first.etag }))
      expect(await textIn(storage, key)).toBe("second")
    }
    // many at once: one wins
    const all = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        Effect.runPromiseExit(storage.put("race", text(`${n}`), roomy, { ifNoneMatch: "*" })),
      ),
    )
    const winners = all.flatMap(({ _tag }, n) => (_tag === "Success" ? [`${n}`] : []))
    expect(winners).toEqual([await textIn(storage, "race")])
  })

  it("list and delete more keys than a page holds", async () => {
    const storage = makeS3Storage(freshStore(server))
    const keys = Array.from({ length: 1_100 }, (_, n) => `many/${String(n).padStart(5, "0")}`)
    const each = (work: (key: string) => Effect.Effect<unknown, unknown>) =>
      run(Effect.forEach(keys, work, { concurrency: 16, discard: true }) as Effect.Effect<void>)
    await each((key) => storage.put(key, text(key), 100))
    await run(storage.put("other", text("other"), 100))
    const listed = await run(Stream.runCollect(storage.list("many/")))
    expect(listed.map(({ key }) => key)).toEqual(keys)
    // twice: removing what is gone is no error
    await each((key) => Effect.andThen(storage.remove(key), storage.remove(key)))
    expect((await run(Stream.runCollect(storage.list("")))).map(({ key }) => key)).toEqual([
      "other",
    ])
  })

  it("name a certificate that has expired, at start and when it does so later, and TLS where there is none", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rakit-s3-tls-"))
    closers.push(() => rmSync(folder, { recursive: true, force: true }))
    const openssl = (...args: string[]) =>
      execFileSync("openssl", args, { cwd: folder, stdio: "pipe" })
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    openssl("req", ...key, "-keyout", "key.pem", "-out", "csr.pem", "-subj", "/CN=127.0.0.1")
    writeFileSync(join(folder, "ext"), "subjectAltName=IP:127.0.0.1")
    const sign = (days: string) => {
      const by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "ext"]
      openssl("x509", "-req", "-in", "csr.pem", ...by, "-days", days, "-out", "cert.pem")
    }
    sign("2")
    const tls = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") }
    const secure = await startS3Server({ tls })
    closers.push(secure.close)
    const ca = readFileSync(join(folder, "ca.pem"), "utf8")
    const open = () =>
      freshStore(secure, { attempts: 1 }, { requestHandler: { httpsAgent: { ca } } })
    const store = open()
    const { check } = makeCheck(store, fakeLog())
    await vi.waitFor(() => run(checkStore(store, fakeLog())), { timeout: 20_000 })
    await run(check)

    // a certificate of -1 day ended yesterday
    sign("-1")
    await secure.restart()
    const late = openStore(store.settings, { requestHandler: { httpsAgent: { ca } } })
    const named = "its certificate has expired. Renew the certificate of the store"
    await vi.waitFor(
      async () =>
        expect((await run(Effect.flip(checkStore(late, fakeLog())))).message).toContain(named),
      { timeout: 20_000 },
    )
    await vi.waitFor(async () => expect(await run(Effect.flip(check))).toContain(named), {
      timeout: 20_000,
    })
    expect(
      await run(
        Effect.flip(makeS3Storage(late).put("k", text("k"), 9) as Effect.Effect<unknown, object>),
      ),
    ).toMatchObject({ _tag: "PortError", message: expect.stringContaining("has expired") })

    const plain = server.endpoint.replace("http:", "https:")
    const wrong = openStore(settingsFor(server, "any", { endpoint: plain, attempts: 1 }))
    expect((await run(Effect.flip(checkStore(wrong, fakeLog())))).message).toContain(
      "Correct http or https in `endpoint`",
    )
  })
})
