import { rmSync } from "node:fs"
import { connect, createServer as createTcpServer, type Socket } from "node:net"
import { join } from "node:path"
import { ListMultipartUploadsCommand } from "@aws-sdk/client-s3"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { fakeLog } from "../../testing/fakes/log.ts"
import { noS3Server, type S3Server, startS3Server } from "../../testing/s3-server.ts"
import { checkStore, makeCheck } from "./probe.ts"
import { makeS3Storage } from "./s3-storage.ts"
import { openStore } from "./store.ts"
import { freshStore, settingsFor } from "./testing/store.ts"
import { sweepUploads } from "./unfinished.ts"

vi.setConfig({ testTimeout: 60_000 })

const run = Effect.runPromise
const megabytes = (count: number) =>
  Stream.range(1, count).pipe(Stream.map((n) => new Uint8Array(2 ** 20).fill(n)))
const roomy = 2 ** 30

describe.skipIf(noS3Server() !== undefined)("a store that misbehaves", () => {
  let server: S3Server
  beforeAll(async () => {
    server = await startS3Server()
  })
  afterAll(() => server.close())
  afterEach(() => void vi.useRealTimers())

  const startError = (more: Parameters<typeof settingsFor>[2], bucket = "there") => {
    server.makeBucket("there")
    const store = openStore(settingsFor(server, bucket, { attempts: 1, ...more }))
    return run(Effect.map(Effect.flip(checkStore(store, fakeLog())), ({ message }) => message))
  }
  const uploadsOf = async (store: ReturnType<typeof freshStore>) =>
    (await store.client.send(new ListMultipartUploadsCommand({ Bucket: store.bucket }))).Uploads ??
    []

  it("is named at start, with the setting to correct", async () => {
    expect(await startError({ endpoint: "http://127.0.0.1:1" })).toContain("Correct `endpoint`")
    expect(await startError({ endpoint: "http://no-such-host.invalid" })).toContain("`endpoint`")
    expect(await startError({ region: "eu-north-7" })).toContain("`region`")
    expect(await startError({ accessKeyId: "nobody" })).toContain("`accessKeyId`")
    expect(await startError({ secretAccessKey: "wrong" })).toContain("`secretAccessKey`")
    expect(await startError({}, "elsewhere")).toContain("no such bucket")
  })

  it("is named by /readyz when its bucket vanishes, and no blob counts as missing", async () => {
    const store = freshStore(server)
    const storage = makeS3Storage(store)
    const { check } = makeCheck(store, fakeLog())
    await run(storage.put("k", megabytes(1), roomy))
    await run(check)
    rmSync(join(server.folder, store.bucket), { recursive: true })
    expect(await run(Effect.flip(check))).toContain("no such bucket")
    for (const work of [storage.stat("k"), Stream.runDrain(storage.get("k")), storage.remove("k")])
      expect(
        await run(Effect.flip(work as Effect.Effect<unknown, { _tag: string }>)),
      ).toMatchObject({ _tag: "PortError" })
  })

  it("corrects a clock that is an hour off, and says so", async () => {
    const store = freshStore(server)
    const log = fakeLog()
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 })
    await run(checkStore(store, log))
    expect(log.lines).toMatchObject([
      { event: "storage.clock_skew", fields: { ahead_by_s: expect.closeTo(3600, -1) } },
    ])
    expect((await run(makeS3Storage(store).put("k", megabytes(20), roomy))).bytes).toBe(
      20 * 2 ** 20,
    )
  })

  it("leaves no part when a put is interrupted, fails or is too large", async () => {
    const store = freshStore(server)
    const storage = makeS3Storage(store)
    const started = Deferred.makeUnsafe<void>()
    const stalled = Stream.concat(
      megabytes(20),
      Stream.fromEffectDrain(Effect.andThen(Deferred.succeed(started, undefined), Effect.never)),
    )
    const fiber = Effect.runFork(storage.put("cut", stalled, roomy))
    await run(Deferred.await(started))
    expect(await uploadsOf(store)).toHaveLength(1)
    await run(Fiber.interrupt(fiber))
    await run(
      Effect.flip(storage.put("torn", Stream.concat(megabytes(20), Stream.fail("x")), roomy)),
    )
    await run(Effect.flip(storage.put("long", megabytes(20), 19 * 2 ** 20)))
    expect(await uploadsOf(store)).toEqual([])
    expect(await run(Stream.runCollect(storage.list("")))).toEqual([])
  })

  it("loses nothing when it is killed in the middle of a put and of a get", async () => {
    const store = freshStore(server, { attempts: 8 })
    const storage = makeS3Storage(store)
    let sent = 0
    const body = Stream.tap(megabytes(30), () =>
      Effect.promise(async () => {
        sent += 1
        if (sent === 15) await server.restart()
      }),
    )
    await run(storage.put("k", body, roomy))
    let read = 0
    let restarts = 0
    await run(
      Stream.runForEach(storage.get("k"), (chunk) =>
        Effect.promise(async () => {
          read += chunk.byteLength
          if (read > 10 * 2 ** 20 && restarts++ === 0) await server.restart()
        }),
      ),
    )
    expect(read).toBe(30 * 2 ** 20)
    expect((await run(storage.stat("k"))).bytes).toBe(30 * 2 ** 20)
  })

  it("fails in time when it is silent", async () => {
    const sockets = new Set<Socket>()
    const silent = createTcpServer((socket) => {
      const up = connect(Number(new URL(server.endpoint).port), "127.0.0.1")
      sockets.add(socket).add(up)
      socket.on("error", () => {})
      // requests arrive, answers stop after 100 kB
      let passed = 0
      socket.pipe(up).on("error", () => {})
      up.on("data", (bytes) => {
        passed += bytes.length
        if (passed < 100_000) socket.write(bytes)
      })
    })
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
    const { port } = silent.address() as { port: number }
    const direct = freshStore(server)
    await run(makeS3Storage(direct).put("k", megabytes(4), roomy))
    const slow = openStore(
      settingsFor(server, direct.bucket, {
        ...{ endpoint: `http://127.0.0.1:${port}`, timeoutMs: 300, retryBudget: 0 },
      }),
    )
    const error = await run(Effect.flip(Stream.runDrain(makeS3Storage(slow).get("k"))))
    expect(error).toMatchObject({ _tag: "PortError" })
    for (const socket of sockets) socket.destroy()
    silent.close()
  })

  it("sweeps uploads of dead processes, and only old ones", async () => {
    const store = freshStore(server)
    const stalled = Stream.concat(megabytes(20), Stream.never)
    const fiber = Effect.runFork(makeS3Storage(store).put("dead", stalled, roomy))
    await vi.waitFor(async () => expect(await uploadsOf(store)).toHaveLength(1), {
      timeout: 20_000,
    })
    const now = Date.now()
    expect(await sweepUploads(store, now - 3_600_000)).toBe(0)
    expect(await sweepUploads(store, now + 3_600_000)).toBe(1)
    expect(await uploadsOf(store)).toEqual([])
    await run(Fiber.interrupt(fiber))
  })
})
