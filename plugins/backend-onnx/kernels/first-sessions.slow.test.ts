import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, test } from "vitest"

const script = join(import.meta.dirname, "..", "testing", "open-at-once.mjs")
const run = promisify(execFile)

// without the lock in addon.cpp, one process of some twenty has a session that can't be created
test("the first sessions of a process can be created at the same moment", async () => {
  for (let processes = 0; processes < 40; processes++) {
    const { stdout } = await run(process.execPath, [script])
    expect(JSON.parse(stdout)).toEqual([])
  }
}, 240_000)
