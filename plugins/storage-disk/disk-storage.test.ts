import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Fiber, Stream } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Storage } from "../../core/ports/storage.ts"
import { writeError } from "./disk-errors.ts"
import { makeDiskStorage } from "./disk-storage.ts"
import { sweep } from "./incoming.ts"
import { prepareFolder } from "./prepare-folder.ts"

const run = Effect.runPromise
const text = (body: string) => Stream.make(new TextEncoder().encode(body))
const read = (storage: Storage, key: string) =>
  Effect.map(Stream.runCollect(storage.get(key)), (chunks) => Buffer.concat([...chunks]).toString())
const keys = (storage: Storage) =>
  Effect.map(Stream.runCollect(storage.list("")), (infos) => [...infos].map(({ key }) => key))

let above: string
let root: string
let storage: Storage

beforeEach(async () => {
  above = await mkdtemp(join(tmpdir(), "storage-disk-"))
  root = await run(prepareFolder(join(above, "deep", "blobs")))
  storage = makeDiskStorage(root)
})
afterEach(() => rm(above, { recursive: true, force: true }))

describe("what is on disk", () => {
  it("is the plain bytes, in a file that ends in ~, readable by the owner only", async () => {
    await run(storage.put("acc/files/one.txt", text("plain"), 100))
    expect(await readFile(join(root, "acc/files/one.txt~"), "utf8")).toBe("plain")
    expect((await stat(join(root, "acc/files/one.txt~"))).mode & 0o777).toBe(0o600)
  })

  it("has no temp file left, however a put ends", async () => {
    await run(storage.put("good", text("x"), 10))
    await run(Effect.flip(storage.put("long", text("too long"), 3)))
    await run(Effect.flip(storage.put("torn", Stream.concat(text("x"), Stream.fail("gone")), 10)))
    const fiber = Effect.runFork(storage.put("cut", Stream.concat(text("x"), Stream.never), 10))
    await expect.poll(() => readdir(join(root, "~incoming"))).toHaveLength(1)
    await run(Fiber.interrupt(fiber))
    expect(await readdir(join(root, "~incoming"))).toEqual([])
    expect(await readdir(root)).toEqual(["good~", "~incoming"])
  })

  it("has no empty folders left after a remove", async () => {
    await run(storage.put("a/b/c/d", text("x"), 10))
    await run(storage.put("a/e", text("x"), 10))
    await run(storage.remove("a/b/c/d"))
    expect(await readdir(join(root, "a"))).toEqual(["e~"])
  })

  it("may hold files of others, which are no blobs", async () => {
    await mkdir(join(root, "lost+found~"))
    await writeFile(join(root, "README"), "not ours")
    await writeFile(join(root, "ä~"), "no key")
    await run(storage.put("z", text("x"), 10))
    expect(await run(keys(storage))).toEqual(["z"])
    expect(await run(Effect.flip(storage.stat("README")))).toMatchObject({ _tag: "BlobMissing" })
  })

  it("may itself be reached by a link", async () => {
    await symlink(root, join(above, "link"))
    const linked = makeDiskStorage(await run(prepareFolder(join(above, "link"))))
    await run(linked.put("a/b", text("x"), 10))
    expect(await run(keys(storage))).toEqual(["a/b"])
  })
})

describe("symbolic links inside the folder", () => {
  beforeEach(async () => {
    await mkdir(join(above, "outside"))
    await writeFile(join(above, "outside", "secret~"), "secret")
    await symlink(join(above, "outside"), join(root, "out"))
    await symlink(join(above, "outside", "secret~"), join(root, "file~"))
  })

  it("are neither read nor listed", async () => {
    for (const key of ["out/secret", "file"]) {
      expect(await run(Effect.flip(storage.stat(key)))).toMatchObject({ _tag: "BlobMissing" })
      expect(await run(Effect.flip(read(storage, key)))).toMatchObject({ _tag: "BlobMissing" })
    }
    expect(await run(keys(storage))).toEqual([])
    expect([...(await run(Stream.runCollect(storage.list("out/"))))]).toEqual([])
  })

  it("are not written or removed through", async () => {
    expect(await run(Effect.flip(storage.put("out/new", text("x"), 10)))).toMatchObject({
      _tag: "PortError",
      message: expect.stringContaining("symbolic link"),
    })
    expect(await run(Effect.flip(storage.put("out/sub/new", text("x"), 10)))).toMatchObject({
      _tag: "PortError",
    })
    await run(storage.remove("out/secret"))
    await run(storage.put("file", text("ours"), 10))
    expect(await run(read(storage, "file"))).toBe("ours")
    expect(await readFile(join(above, "outside", "secret~"), "utf8")).toBe("secret")
    expect(await readdir(join(above, "outside"))).toEqual(["secret~"])
  })
})

describe("sweep", () => {
  it("takes only what nobody has written to for long", async () => {
    const nowMs = Date.UTC(2026, 0, 15)
    const leave = async (name: string, ageMs: number) => {
      await writeFile(join(root, "~incoming", name), "half")
      await utimes(join(root, "~incoming", name), (nowMs - ageMs) / 1000, (nowMs - ageMs) / 1000)
    }
    await leave("old", 3_600_000)
    await leave("young", 3_599_000)
    expect(await sweep(root, nowMs, 3_600_000)).toBe(1)
    expect(await readdir(join(root, "~incoming"))).toEqual(["young"])
  })

  it("makes the put whose file it took fail, and spoils nothing", async () => {
    const body = Stream.concat(
      text("x"),
      Stream.fromEffectDrain(Effect.promise(() => sweep(root, 2 ** 50, 0))),
    )
    expect(await run(Effect.flip(storage.put("k", body, 10)))).toMatchObject({ _tag: "PortError" })
    expect(await run(keys(storage))).toEqual([])
  })
})

describe("errors", () => {
  it("knows a full disk and a full quota", () => {
    for (const code of ["ENOSPC", "EDQUOT"])
      expect(writeError("k")(Object.assign(new Error(code), { code }))).toMatchObject({
        _tag: "StorageFull",
        key: "k",
      })
    expect(writeError("k")(Object.assign(new Error("EIO"), { code: "EIO" }))).toMatchObject({
      _tag: "PortError",
      message: expect.stringContaining("EIO"),
    })
  })

  it("names the folder that can't be written, and what to do", async () => {
    await writeFile(join(above, "a-file"), "")
    const error = await run(Effect.flip(prepareFolder(join(above, "a-file", "blobs"))))
    expect(error).toMatchObject({ _tag: "PluginError", plugin: "storage-disk" })
    expect(error.message).toContain(join(above, "a-file", "blobs"))
    expect(error.message).toContain("storage-disk")
  })

  it("names a folder of blobs that can't be written below a sound one", async () => {
    await writeFile(join(above, "~incoming"), "in the way")
    expect((await run(Effect.flip(prepareFolder(above)))).message).toContain(above)
  })
})
