import { execFile } from "node:child_process"
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, it } from "vitest"
import { askDashboard } from "../dashboard-client.ts"
import { type Platform, startPlatform } from "../platform.ts"

const execute = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), "rakit-generators-"))

let platform: Platform
let env: NodeJS.ProcessEnv
beforeAll(async () => {
  platform = await startPlatform({ env: { RAKIT_TEST_BATCH_POLL_MS: "100" } })
  const { email, password, api_key } = platform.credentials
  const { token } = await askDashboard(platform.url, "/dashboard/login", "", { email, password })
  env = {
    ...process.env,
    RAKIT_URL: platform.url,
    RAKIT_KEY: api_key,
    RAKIT_SESSION: token,
  }
  writeFileSync(
    join(folder, "openapi.json"),
    await (await fetch(`${platform.url}/openapi.json`)).text(),
  )
}, 60_000)
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A copy of the client's folder, with what the test makes. */
const copyOf = (name: string): string => {
  const copy = join(folder, name)
  cpSync(join(import.meta.dirname, "generators", name), copy, { recursive: true })
  return copy
}

const run = async (cwd: string, command: string, ...args: string[]): Promise<string> => {
  try {
    const { stdout, stderr } = await execute(command, args, { cwd, env })
    return stdout + stderr
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${command} ${args.join(" ")}\n${stdout}\n${stderr}`)
  }
}

it("openapi-typescript: strict types, and every example", { timeout: 300_000 }, async () => {
  const cwd = copyOf("typescript")
  await run(cwd, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
  const bin = (name: string) => join(cwd, "node_modules/.bin", name)
  await run(cwd, bin("openapi-typescript"), "../openapi.json", "-o", "api.ts")
  const options = ["--strict", "--noUncheckedIndexedAccess", "--module", "nodenext"]
  await run(cwd, bin("tsc"), "api.ts", "client.ts", "--target", "es2022", ...options)
  expect(await run(cwd, process.execPath, "client.js")).toBe("every example\n")
})

const python = async (): Promise<boolean> =>
  execute("python3", ["-c", "import venv, ensurepip"]).then(
    () => true,
    () => false,
  )

it("openapi-python-client: no warning, strict types, and every example", {
  timeout: 300_000,
}, async (context) => {
  // CI installs it; elsewhere it may be missing
  if (!process.env.CI && !(await python()))
    return context.skip("no python3 with venv on this machine (apt-get install python3-venv)")
  const cwd = copyOf("python")
  const bin = (name: string) => join(cwd, "venv/bin", name)
  await run(cwd, "python3", "-m", "venv", "venv")
  await run(cwd, bin("pip"), "install", "-q", "--no-compile", "-r", "requirements.txt")
  env = { ...env, PATH: `${join(cwd, "venv/bin")}:${process.env.PATH}` } // it calls ruff
  const options = ["--meta", "none", "--output-path", "rakit_client", "--fail-on-warning"]
  expect(
    await run(
      cwd,
      bin("openapi-python-client"),
      "generate",
      "--path",
      "../openapi.json",
      ...options,
    ),
  ).toBe("Generating rakit_client\n")
  await run(cwd, bin("mypy"), "rakit_client", "client.py")
  expect(await run(cwd, bin("python"), "client.py")).toBe("every example\n")
})
