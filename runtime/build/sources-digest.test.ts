import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { sourcesDigest } from "./sources-digest.ts"

const sources = {
  "package.json": "{}",
  "core/call.ts": "1",
  "plugins/backend/kernels/product.cpp": "2",
  "runtime/cli.ts": "3",
  "runtime/cli.test.ts": "4",
  "runtime/testing/fake.ts": "5",
}

const digestOf = (files: Readonly<Record<string, string>>): string => {
  const root = mkdtempSync(join(tmpdir(), "rakit-sources-"))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return sourcesDigest(root)
}

test("is another one for any other source or package, and the same whatever the tests are", () => {
  const digest = digestOf(sources)
  expect(digest).toMatch(/^[0-9a-f]{64}$/)
  for (const path of ["package.json", "core/call.ts", "plugins/backend/kernels/product.cpp"])
    expect(digestOf({ ...sources, [path]: "changed" })).not.toBe(digest)
  const { "runtime/cli.ts": text, ...others } = sources
  expect(digestOf({ ...others, "runtime/cl.ts": text })).not.toBe(digest)
  for (const path of [
    "runtime/cli.test.ts",
    "runtime/testing/fake.ts",
    "plugins/backend/README.md",
  ])
    expect(digestOf({ ...sources, [path]: "changed" })).toBe(digest)
})
