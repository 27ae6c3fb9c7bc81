import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"

/**
 * Mounts a file system of `megabytes` for the tests of one file; undefined where mounting is not
 * allowed (it takes root on Linux).
 */
export const mountSmallDisk = (megabytes = 1): string | undefined => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-small-disk-"))
  let isMounted = false
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder], {
      stdio: "ignore",
    })
    isMounted = true
  } catch {
    // not root, or no Linux
  }
  afterAll(() => {
    if (isMounted) execFileSync("umount", [folder])
    rmSync(folder, { recursive: true, force: true })
  })
  return isMounted ? folder : undefined
}
