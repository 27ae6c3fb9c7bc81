import { mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { makeMissingLinks } from "./binaries.ts"

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rakit-links-"))
  mkdirSync(join(folder, "native", "lib"), { recursive: true })
  writeFileSync(join(folder, "native", "lib", "libpq.so.5.18"), "")
  const links = ["libpq.so", "libpq.so.5"].map((name) => ({
    source: "native/lib/libpq.so.5.18",
    target: `native/lib/${name}`,
  }))
  writeFileSync(join(folder, "native", "pg-symlinks.json"), JSON.stringify(links))
})
afterAll(() => rmSync(folder, { recursive: true }))

test("links that npm did not make are made, and those that are there stay", () => {
  makeMissingLinks(folder)
  makeMissingLinks(folder)
  for (const name of ["libpq.so", "libpq.so.5"])
    expect(readlinkSync(join(folder, "native", "lib", name))).toBe("libpq.so.5.18")
})

test("a package without a list needs none", () => {
  expect(() => makeMissingLinks(join(folder, "native"))).not.toThrow()
})
