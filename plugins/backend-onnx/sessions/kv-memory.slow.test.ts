import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { addon } from "../kernels/addon.ts"

test.skipIf(!addon || !existsSync("/sys/kernel/mm/transparent_hugepage"))(
  "large pages are asked for in what has several of them, and in nothing else",
  () => {
    // in a process of its own: other tests' memory goes when it is collected
    const script = join(import.meta.dirname, "../testing/advise-in-process.ts")
    const args = ["--import", "tsx", script]
    const output = execFileSync(process.execPath, args, { encoding: "utf8" })
    const found = JSON.parse(output) as readonly [number, number, number, boolean]
    const [before, withSmall, withLarge, isZero] = found
    expect(withSmall).toBe(before)
    expect(withLarge - before).toBeGreaterThanOrEqual(6 * 1024)
    expect(isZero).toBe(true)
  },
)
