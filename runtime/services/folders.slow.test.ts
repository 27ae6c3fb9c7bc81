import { execFileSync, spawnSync } from "node:child_process"
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { makeFolders } from "../../core/folders.ts"
import { folderTrouble, makeDataFolder } from "./folders.ts"

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rakit-folders-"))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const troubleOf = (path: string): string => {
  try {
    makeDataFolder(path)
    return "none"
  } catch (cause) {
    return folderTrouble(cause)
  }
}

it("makes all folders, private, and leaves nothing of its trial", () => {
  const deep = join(folder, "a/b/c")
  expect(troubleOf(deep)).toBe("none")
  expect(["a", "a/b", "a/b/c"].map((name) => statSync(join(folder, name)).mode & 0o777)).toEqual([
    0o700, 0o700, 0o700,
  ])
  expect(readdirSync(deep)).toEqual([])
  expect(troubleOf(deep)).toBe("none")
  makeFolders(deep)
})

it("says why a folder can't be made or used", () => {
  writeFileSync(join(folder, "file"), "")
  symlinkSync(join(folder, "loop"), join(folder, "loop"))
  symlinkSync(join(folder, "nowhere"), join(folder, "dangling"))
  expect(troubleOf(join(folder, "file"))).toBe("it is no folder (EEXIST)")
  expect(troubleOf(join(folder, "file/x/y"))).toBe("a part of the path is no folder (ENOTDIR)")
  expect(troubleOf("/dev/null/x")).toBe("a part of the path is no folder (ENOTDIR)")
  expect(troubleOf(join(folder, "loop/x"))).toMatch(/\((ELOOP)\)$/)
  expect(troubleOf(join(folder, "dangling"))).toBe("it is no folder (EEXIST)")
  expect(troubleOf(join(folder, "x".repeat(300)))).toBe("the path is too long (ENAMETOOLONG)")
})

it.skipIf(process.platform !== "linux")("returns below /proc, too", () => {
  for (const path of ["/proc/nope", "/proc/nope/a/b", "/proc/self/nope", "/proc/1/nope/x"])
    expect([path, troubleOf(path)]).toEqual([path, expect.stringMatching(/ \(E[A-Z]+\)$/)])
})

it.skipIf(process.getuid?.() === 0)("without permission", () => {
  const closed = mkdtempSync(join(folder, "closed-"))
  chmodSync(closed, 0o500)
  expect(troubleOf(closed)).toBe("permission denied (EACCES)")
  expect(troubleOf(join(closed, "x"))).toBe("permission denied (EACCES)")
})

/** Whether this test may mount file systems. */
const canMount =
  process.platform === "linux" &&
  spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0

const program = `import("${import.meta.dirname}/folders.ts").then(({ makeDataFolder, folderTrouble }) => {
  try { makeDataFolder(process.argv[1]); console.log("none") } catch (cause) { console.log(folderTrouble(cause)) }
})`

const inMount = (mount: string, path: string): string =>
  execFileSync("unshare", [
    ...["-m", "sh", "-c", `${mount} && exec "$0" --import tsx --input-type=module -e "$1" ${path}`],
    ...[process.execPath, program],
  ]).toString()

it.skipIf(!canMount)("on a full disk, and on a read-only one", () => {
  const disk = "mount -t tmpfs -o size=8k none /mnt"
  expect(inMount(disk, "/mnt/data")).toBe("the disk is full (ENOSPC)\n")
  const sealed = "mount -t tmpfs none /mnt && mount -o remount,ro /mnt"
  expect(inMount(sealed, "/mnt")).toBe("the file system is read-only (EROFS)\n")
  expect(inMount(sealed, "/mnt/data")).toBe("the file system is read-only (EROFS)\n")
})
