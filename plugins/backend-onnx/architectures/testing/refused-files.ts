import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect } from "vitest"
import { openDecoder } from "../../sessions/open-decoder.ts"
import { fixtureFolder } from "../../testing/fixtures.ts"
import { ModelFileError } from "../../weights/model-file-error.ts"

/**
 * Writes model files into a temporary folder and reports why opening them fails. Call it once in a
 * test file.
 */
export const refusedFiles = () => {
  const root = mkdtempSync(join(tmpdir(), "rakit-damaged-"))
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  const open = (path: string) =>
    openDecoder({ path, graphs: join(root, "graphs"), precision: "int8", threads: 1 }, () => {})

  let files = 0
  const stored = (bytes: Uint8Array): string => {
    const path = join(root, `${files++}.gguf`)
    writeFileSync(path, bytes)
    return path
  }

  /** Returns the message that opening fails with. It must begin with the path. */
  const refusal = async (path: string): Promise<string> => {
    const error = await open(path).then(
      () => undefined,
      (cause: unknown) => cause,
    )
    expect(error).toBeInstanceOf(ModelFileError)
    const { message } = error as Error
    expect(message.startsWith(path)).toBe(true)
    return message
  }

  const copied = (name: string, change: (folder: string) => void): string => {
    const folder = join(root, `folder-${files++}`)
    cpSync(fixtureFolder(name), folder, { recursive: true })
    change(folder)
    return folder
  }
  return { root, open, stored, refusal, copied }
}
