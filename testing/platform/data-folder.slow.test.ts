import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import { expect, it } from "vitest"
import { askDashboard } from "../dashboard-client.ts"
import { startPlatform } from "../platform.ts"

/** `blobs/x: 600`, of everything below the folder that others than its owner may use. */
const openToOthers = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => {
      // the database deletes files of its own all the time
      const found = statSync(join(folder, name), { throwIfNoEntry: false })
      return { name, mode: (found?.mode ?? 0) & 0o777 }
    })
    .filter(({ mode }) => (mode & 0o077) !== 0)
    .map(({ name, mode }) => `${name}: ${mode.toString(8)}`)

it("nothing in the data folder is open to other users", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "rakit-modes-"))
  const platform = await startPlatform({ database: "embedded", dataDir })
  try {
    const { url, credentials } = platform
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key })
    const lines = await toFile(Buffer.from("{}\n"), "lines.jsonl")
    await client.files.create({ file: lines, purpose: "batch" })
    await client.uploads.create({
      ...{ filename: "a.jsonl", purpose: "batch", bytes: 3, mime_type: "text/plain" },
    })
    await askDashboard(url, "/dashboard/signup", "", {
      ...{ email: "new@example.com", password: "correct horse battery" },
    })
    await expect
      .poll(() => readdirSync(join(dataDir, "outbox")))
      .toEqual([expect.stringMatching(/\.eml$/)])
    expect(readdirSync(dataDir)).toEqual(
      expect.arrayContaining(["credentials.json", "secret.key", "postgres.port", "server.lock"]),
    )
    expect(openToOthers(dataDir)).toEqual([])
  } finally {
    await platform.stop()
    await platform.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
