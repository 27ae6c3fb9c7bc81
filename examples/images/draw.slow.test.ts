import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import sharp from "sharp"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"

let platform: Platform
const folder = mkdtempSync(join(tmpdir(), "rakit-draw-"))
beforeAll(async () => {
  platform = await startPlatform()
}, 60_000)
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true })
})

it("draw.js writes pictures: plain, with a LoRA, edited and streamed", async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(import.meta.dirname, "draw.js"), "A green tree", folder],
    { env: { ...platform.env, RAKIT_BASE_URL: `${platform.url}/v1` } },
  )
  const names = ["plain", "dark", "edited", "preview-0", "preview-1", "streamed"]
  expect(stdout.trim().split("\n")).toEqual([
    ...names.map((name) => join(folder, `${name}.png`)),
    "(Rp3000)",
  ])
  const parameters = async (name: string) => {
    const { width, height, comments } = await sharp(
      readFileSync(join(folder, `${name}.png`)),
    ).metadata()
    return { width, height, ...(comments && JSON.parse(comments[0]?.text ?? "")) }
  }
  const common = { model: "svc-iris", seed: 7 }
  const tree = { ...common, prompt: "A green tree" }
  expect(await parameters("plain")).toMatchObject({ ...tree, lora: "none", width: 512 })
  expect(await parameters("dark")).toMatchObject({ ...tree, lora: "dark", lora_strength: 0.8 })
  expect(await parameters("edited")).toMatchObject({ ...common, strength: 0.9, height: 512 })
  expect(await parameters("streamed")).toMatchObject({ ...tree, num_steps: 8, size: "768x768" })
})
