import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"

/*
 * The recipe on eight pictures with one step. Needs a Python with what requirements.txt names
 * (RAKIT_TEST_PYTHON, else python3); it is skipped where there is none.
 */
const python = process.env.RAKIT_TEST_PYTHON ?? "python3"
const has = spawnSync(python, ["-c", "import torch, transformers, PIL, safetensors"]).status === 0
if (!has) console.warn(`skipped: ${python} has no torch, transformers, pillow and safetensors`)

const folder = mkdtempSync(join(tmpdir(), "rakit-vision-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it.skipIf(!has)("trains, exports and evaluates a tower", { timeout: 300_000 }, () => {
  const out = execFileSync(python, [join(import.meta.dirname, "smoke.py"), join(folder, "run")], {
    encoding: "utf8",
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
  })
  expect(out).toMatch(/^8 pictures at 32; chance: R@1 0\.1250, R@5 0\.6250$/m)
  expect(out).toMatch(/^## colour histograms$/m)
  const { changed, shapes } = JSON.parse(out.trim().split("\n").at(-1)!)
  // the depthwise kernels and the earlier blocks stay those of ImageNet
  expect(changed).toEqual([
    ...["blocks.15.expand", "blocks.15.project", "head", "projection"].flatMap((name) => [
      `${name}.weight`,
      `${name}.bias`,
    ]),
  ])
  expect(shapes["projection.weight"]).toEqual([32, 1280])
})
