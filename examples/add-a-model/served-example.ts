import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { type Platform, runCli, startPlatform } from "rakit/testing/platform"
import { afterAll, beforeAll } from "vitest"

/** For the tests of one file: a server of an example's config file, and a client with its key. */
export const servedExample = (config: string) => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-example-"))
  let platform: Platform
  let client: OpenAI
  beforeAll(async () => {
    const made = await runCli(["keys", "hash", "--name", "app", "--json"])
    const { key, hash } = JSON.parse(made.stdout) as { readonly key: string; readonly hash: string }
    platform = await startPlatform({
      ...{ config, database: "embedded", dataDir: folder },
      env: { HOST: "127.0.0.1", RAKIT_KEY_HASH: hash },
    })
    client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: key, maxRetries: 0 })
  })
  afterAll(async () => {
    await platform?.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { folder, client: () => client }
}
