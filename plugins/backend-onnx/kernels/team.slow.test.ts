import { execFile, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"

const folder = mkdtempSync(join(tmpdir(), "rakit-team-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const run = promisify(execFile)
const source = join(import.meta.dirname, "../testing/team-stress.cpp")
const canCompile =
  process.platform === "linux" &&
  process.arch === "x64" &&
  spawnSync("c++", ["--version"]).status === 0

describe.skipIf(!canCompile)("a team of threads", () => {
  const program = (name: string) => join(folder, name)
  const compile = (name: string, options: readonly string[]) =>
    run("c++", ["-std=c++17", "-g", ...options, source, "-o", program(name), "-lpthread"])
  beforeAll(() => compile("plain", ["-O3"]), 60_000)

  test("runs each part once, whoever is late, and ends", { timeout: 120_000 }, async () => {
    for (const threads of ["1", "2", "3", "16"])
      expect(await run(program("plain"), [threads, "60"])).toEqual({ stdout: "", stderr: "" })
  })

  test("has no data race", { timeout: 120_000 }, async ({ skip }) => {
    await compile("checked", ["-O1", "-fsanitize=thread"]).catch(() => skip("no ThreadSanitizer"))
    for (const threads of ["1", "2", "3", "8"])
      expect(await run(program("checked"), [threads, "20"])).toEqual({ stdout: "", stderr: "" })
  })
})
