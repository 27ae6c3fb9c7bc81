import { execFile, spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"

const root = mkdtempSync(join(tmpdir(), "rakit-kernels-build-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const folder = "plugins/backend-onnx/kernels"
const script = join(root, "dist", folder, "build.ts")
const built = join(root, "dist", folder, "rakit-kernels.node")

beforeAll(() => {
  cpSync(join(import.meta.dirname, "build.ts"), script)
  writeFileSync(join(root, "package.json"), JSON.stringify({ type: "module" }))
  cpSync(join(import.meta.dirname, "native"), join(root, folder, "native"), { recursive: true })
})

/** Runs the build of the copy; rejects where it does not end with 0. */
const build = async (compiler: string): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", script],
    { env: { ...process.env, CXX: compiler } },
  )
  return stdout + stderr
}

const isOurs = process.platform === "linux" && process.arch === "x64"
const canCompile = isOurs && spawnSync("c++", ["--version"]).status === 0

test.skipIf(!isOurs)(
  "a build without a compiler, or with a bad one, says so in one line",
  async () => {
    const instead = "ONNX Runtime's own run instead\n"
    expect(await build("/missing/c++")).toBe(
      `rakit: native kernels not built (no C++ compiler '/missing/c++'); ${instead}`,
    )
    expect(await build("false")).toMatch(/^rakit: native kernels not built \(.+\); .*\n$/)
    expect(existsSync(built)).toBe(false)
  },
)

test.skipIf(!canCompile)(
  "kernels are built once, and gone when they can't be built anew",
  async () => {
    expect(await build("c++")).toBe("")
    const { mtimeMs } = statSync(built)
    expect(await build("c++")).toBe("")
    expect(statSync(built).mtimeMs).toBe(mtimeMs)
    await build("/missing/c++")
    expect(existsSync(built)).toBe(false)
  },
  120_000,
)
