import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"

/*
 * The recipe on a handful of pairs with a tiny random encoder. Needs a Python with what
 * requirements.txt names (RAKIT_TEST_PYTHON, else python3); it is skipped where there is none.
 */
const python = process.env.RAKIT_TEST_PYTHON ?? "python3"
const has = spawnSync(python, ["-c", "import torch, transformers, safetensors"]).status === 0
if (!has) console.warn(`skipped: ${python} has no torch, transformers and safetensors`)

const folder = mkdtempSync(join(tmpdir(), "rakit-reranker-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it.skipIf(!has)("mines, trains, calibrates, quantizes, evaluates", { timeout: 300_000 }, () => {
  const out = execFileSync(python, [join(import.meta.dirname, "smoke.py"), folder], {
    encoding: "utf8",
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
  })
  expect(out).toMatch(/^done: \d+ steps, \d+ pairs$/m)
  expect(out).toMatch(/^scale \S+ bias \S+$/m)
  // all of them are asked: too few steps to learn from, so the figures say nothing
  expect(out).toMatch(/^written 50 {.*'bi-encoder': [\d.]+, 'cross-encoder': [\d.]+}.*'ECE'/m)
  const { int8, float32 } = JSON.parse(out.trim().split("\n").at(-1)!)
  // six matrices in each of two layers, two embeddings, the pooler: each with its scales
  expect(int8).toBe(2 * 6 + 3)
  expect(float32).toBeGreaterThan(int8)
})
