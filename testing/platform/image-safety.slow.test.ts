import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import OpenAI from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { stringify } from "yaml"
import { type Platform, runCli, startPlatform } from "../platform.ts"

/** The filters in a whole server, its threads and its exit; the pictures are a fake model's. */
const fakes = fileURLToPath(new URL("../fakes/backend.ts", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "rakit-image-safety-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let key: string
let hash: string
beforeAll(async () => {
  const made = JSON.parse((await runCli(["keys", "hash", "--name", "one", "--json"])).stdout)
  key = made.key
  hash = made.hash
})

const start = (name: string, settings: object): Promise<Platform> => {
  const config = join(folder, `${name}.yaml`)
  writeFileSync(
    config,
    stringify({
      dataDir: join(folder, name),
      server: { host: "127.0.0.1", port: 0 },
      plugins: {
        "billing-free": {},
        "identity-static": { keys: [{ name: "one", hash }] },
        [fakes]: {},
        "endpoint-models": {},
        "endpoint-images": {},
        "safety-images": settings,
      },
      models: [
        {
          id: "svc-iris",
          task: "image",
          backend: "fake",
          limits: { contextTokens: 512 },
          price: { image: 750 },
        },
      ],
    }),
  )
  return startPlatform({ config })
}
const clientOf = ({ url }: Platform) =>
  new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 })
const draw = (platform: Platform, prompt: string) =>
  clientOf(platform).images.generate({ model: "svc-iris", prompt })
const refusal = { status: 400, code: "content_policy_violation" }

it("refuses prompts, counts them, and keeps them out of the log", async () => {
  const platform = await start("prompts", {})
  const { data } = await draw(platform, "a lighthouse in a storm")
  expect(data?.[0]?.b64_json).toBeTruthy()
  for (const prompt of ["a n.4.k.e.d sailor", "Jok0wi surfing", "anak b*gil"])
    await expect(draw(platform, prompt)).rejects.toMatchObject(refusal)
  const metrics = await (await fetch(`${platform.url}/metrics`)).text()
  const refusals = metrics.split("\n").filter((line) => line.startsWith("rakit_safety_refusals"))
  expect(refusals.sort()).toEqual(
    ["minors", "nsfw", "public_figures"].map(
      (category) => `rakit_safety_refusals_total{stage="prompt",category="${category}"} 1`,
    ),
  )
  await platform.close()
  const { stdout, stderr } = platform.output()
  expect(stdout + stderr).not.toMatch(/sailor|surfing|anak|lighthouse/)
}, 120_000)

it("refuses pictures by their classes, and ends in the middle of many", async () => {
  const platform = await start("pictures", { thresholds: { hentai: 0, porn: 1, sexy: 1 } })
  await expect(draw(platform, "a lighthouse")).rejects.toMatchObject(refusal)
  const many = Array.from({ length: 8 }, () => draw(platform, "a lighthouse").catch(() => {}))
  expect(await platform.stop()).toBe(0)
  await Promise.all(many)
  await platform.close()
}, 120_000)
