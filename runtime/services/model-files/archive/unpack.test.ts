import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { runs } from "../../../../testing/property.ts"
import { makeTgz, makeZip } from "../testing/archives.ts"
import { noise, sha256 } from "../testing/fixture.ts"
import type { UnpackLimits } from "./sink.ts"
import { unpack } from "./unpack.ts"

let dir = ""
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "unpack-"))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

const run = async (form: "zip" | "tgz", bytes: Buffer, limits?: UnpackLimits) => {
  const archive = join(dir, "archive")
  await writeFile(archive, bytes)
  return unpack({
    archive,
    form,
    into: join(dir, "out"),
    signal: new AbortController().signal,
    ...(limits && { limits }),
  })
}
const hello = Buffer.from("hello")
const symlink = 0o120777

describe("unpack", () => {
  it("writes and hashes every file of a zip", async () => {
    const big = noise(300_000)
    const files = await run(
      "zip",
      makeZip([
        { name: "a/", data: Buffer.alloc(0), mode: 0o040755 },
        { name: "a/big.bin", data: big },
        { name: "ü.txt", data: hello },
      ]),
    )
    expect(files).toEqual([
      { path: "a/big.bin", bytes: big.length, sha256: sha256(big) },
      { path: "ü.txt", bytes: 5, sha256: sha256(hello) },
    ])
    expect(big.equals(await readFile(join(dir, "out/a/big.bin")))).toBe(true)
  })

  it("writes every file of a tgz without its top folder", async () => {
    const big = noise(300_000)
    const files = await run(
      "tgz",
      makeTgz([
        { path: "package/", type: "Directory" },
        { path: "package/x/big.bin", data: big },
        { path: "package/empty" },
        { path: "package/last.txt", data: hello },
      ]),
    )
    expect(files.map(({ path, bytes }) => [path, bytes])).toEqual([
      ["x/big.bin", 300_000],
      ["empty", 0],
      ["last.txt", 5],
    ])
    expect(big.equals(await readFile(join(dir, "out/x/big.bin")))).toBe(true)
  })

  it.each([
    "../evil",
    "a/../../evil",
    "/etc/evil",
    "a\\..\\evil",
    "C:/evil",
    "a//b",
    "./a",
    "a/\u0000b",
  ])("refuses the path %j in a zip", async (name) => {
    await expect(
      run(
        "zip",
        makeZip([
          { name: "fine", data: hello },
          { name, data: hello },
        ]),
      ),
    ).rejects.toThrow(/archive/)
    expect(await readdir(dir)).not.toContain("evil")
  })

  it.each(["package/../../evil", "../evil", "/etc/evil", "package/a\\b"])(
    "refuses the path %j in a tgz",
    async (path) => {
      await expect(
        run(
          "tgz",
          makeTgz([
            { path: "package/fine", data: hello },
            { path, data: hello },
          ]),
        ),
      ).rejects.toThrow(/unsafe path/)
      expect(await readdir(dir)).not.toContain("evil")
    },
  )

  it("refuses links", async () => {
    await expect(
      run("zip", makeZip([{ name: "link", data: Buffer.from("/etc/passwd"), mode: symlink }])),
    ).rejects.toThrow(/link/)
    await expect(
      run("tgz", makeTgz([{ path: "package/l", type: "SymbolicLink", linkpath: "/etc/passwd" }])),
    ).rejects.toThrow(/link/)
    await expect(
      run(
        "tgz",
        makeTgz([
          { path: "package/a", data: hello },
          { path: "package/l", type: "Link", linkpath: "package/a" },
        ]),
      ),
    ).rejects.toThrow(/link/)
  })

  it("refuses names that come twice, also by case, and a file used as a folder", async () => {
    await expect(
      run(
        "zip",
        makeZip([
          { name: "a", data: hello },
          { name: "A", data: hello },
        ]),
      ),
    ).rejects.toThrow(/twice/)
    await expect(
      run(
        "zip",
        makeZip([
          { name: "a", data: hello },
          { name: "a/b", data: hello },
        ]),
      ),
    ).rejects.toThrow(/damaged/)
  })

  it("refuses absurd sizes and counts", async () => {
    const zeros = Buffer.alloc(80 * 1024 * 1024)
    await expect(run("zip", makeZip([{ name: "bomb", data: zeros }]))).rejects.toThrow(
      /unpacks to more/,
    )
    await expect(run("tgz", makeTgz([{ path: "package/bomb", data: zeros }]))).rejects.toThrow(
      /unpacks to more|ratio/,
    )
    await expect(
      run(
        "zip",
        makeZip([
          { name: "a", data: hello },
          { name: "b", data: hello },
        ]),
        { files: 1, bytes: 100 },
      ),
    ).rejects.toThrow(/more than 1 files/)
    await expect(run("zip", makeZip([]))).rejects.toThrow(/empty/)
  })

  it("notices a wrong checksum", async () => {
    await expect(run("zip", makeZip([{ name: "a", data: hello, crc: 1 }]))).rejects.toThrow(
      /wrong checksum/,
    )
  })

  it("ends, with a clear text or with the right files, on any damaged archive", async () => {
    const data = noise(2_000)
    const whole = {
      zip: makeZip([
        { name: "p/a", data },
        { name: "p/b", data: hello },
      ]),
      tgz: makeTgz([
        { path: "p/a", data },
        { path: "p/b", data: hello },
      ]),
    }
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("zip" as const, "tgz" as const),
        fc.nat(),
        fc.nat(255),
        fc.boolean(),
        async (form, at, byte, cut) => {
          const bytes = Buffer.from(whole[form])
          const where = at % bytes.length
          bytes[where] = byte
          const outcome = await run(form, cut ? bytes.subarray(0, where) : bytes).catch(
            (error: unknown) => error,
          )
          if (outcome instanceof Error) expect(outcome.message).toMatch(/archive/)
        },
      ),
      { numRuns: runs(150) },
    )
  })
})
