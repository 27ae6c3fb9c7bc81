import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { folderVariable, serverVariable, stopTestServer } from "./test-server.ts"

/** Only names a folder: the embedded server starts when the first test file asks for it, and ends here. */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (process.env[serverVariable]) return undefined
  const folder = await mkdtemp(join(tmpdir(), "rakit-test-"))
  process.env[folderVariable] = folder
  return async () => {
    await stopTestServer(folder)
    await rm(folder, { recursive: true, force: true })
  }
}
