import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, describe, expect, test } from "vitest"
import { addon } from "../kernels/addon.ts"
import type { ProductsReport } from "../testing/products-in-process.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-instructions-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** What the processor must have for kernels of this name (kernels/native/processor.cpp). */
const flags = { amx: "amx_int8", avx512: "avx512_vnni", avx2: "avx2" }
type Name = keyof typeof flags
const names = Object.keys(flags) as Name[]
const has = (name: Name): boolean =>
  addon !== undefined && readFileSync("/proc/cpuinfo", "utf8").includes(` ${flags[name]}`)

/** What a process reports that RAKIT_KERNELS tells to use these kernels. */
const productsBy = async (name: Name | "none" | ""): Promise<ProductsReport> => {
  const folder = mkdtempSync(join(root, "graphs-"))
  const script = join(import.meta.dirname, "../testing/products-in-process.ts")
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", script, folder],
    { env: { ...process.env, RAKIT_KERNELS: name } },
  )
  return JSON.parse(stdout) as ProductsReport
}

describe.each(names)("RAKIT_KERNELS=%s", (name) => {
  test.skipIf(!has(name))("multiplies rightly", async () => {
    const { worst, hidden, ...found } = await productsBy(name)
    expect(found).toMatchObject({ name, version: expect.any(String), operators: ["BlockMatMul"] })
    expect(worst).toBeLessThanOrEqual(1)
    expect(hidden).toBe(0)
  })
})

test.skipIf(!has("amx"))("AMX and AVX512 give the same bytes", async () => {
  const [amx, avx512] = [await productsBy("amx"), await productsBy("avx512")]
  expect(amx.digest).toBe(avx512.digest)
})

test.skipIf(!names.some(has))(
  "without the variable the first that the processor has run",
  async () => {
    expect((await productsBy("")).name).toBe(names.find(has))
  },
)

test("RAKIT_KERNELS=none leaves products to ONNX Runtime", async () => {
  const { worst, hidden: _hidden, digest: _, ...found } = await productsBy("none")
  expect(found).toEqual({ operators: ["MatMulNBits"] })
  expect(worst).toBeLessThanOrEqual(1)
})
