import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import OpenAI, { toFile } from "openai"
import sharp from "sharp"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { stringify } from "yaml"
import { brokenImages, plainImage } from "../images.ts"
import { type Platform, runCli, startPlatform } from "../platform.ts"

/** Pipelines with random weights, and LoRAs of them: the real engine. */
const fixtures = fileURLToPath(
  new URL("../../plugins/backend-onnx/fixtures/diffusion", import.meta.url),
)
const folder = mkdtempSync(join(tmpdir(), "rakit-images-"))
let platform: Platform
let client: OpenAI
let apiKey = ""

const writeConfig = async (): Promise<string> => {
  const made = JSON.parse((await runCli(["keys", "hash", "--name", "k", "--json"])).stdout)
  apiKey = made.key
  const file = join(folder, "rakit.yaml")
  const model = (id: string, more: object = {}) => ({
    id,
    task: "image",
    backend: "onnx",
    limits: { contextTokens: 77 },
    modalities: ["text", "image"],
    capabilities: ["image_generation", "image_editing"],
    price: { image: 750 },
    sources: [{ url: `file:${fixtures}/${id}/` }],
    options: { precision: "fp32" },
    ...more,
  })
  const dark = { id: "dark", sources: [{ url: `file:${fixtures}/lora/sd/peft.safetensors` }] }
  writeFileSync(
    file,
    stringify({
      dataDir: join(folder, "data"),
      server: { host: "127.0.0.1", port: 0 },
      plugins: {
        "billing-free": {},
        "identity-static": { keys: [{ name: "k", hash: made.hash }] },
        "backend-onnx": { threads: 1 },
        "endpoint-images": {},
        "endpoint-models": {},
        "safety-images": {},
      },
      models: [model("sd", { adapters: [dark] }), model("flux2")],
    }),
  )
  return file
}

beforeAll(async () => {
  platform = await startPlatform({ config: await writeConfig() })
  client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
}, 120_000)
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true, force: true })
})

const body = (model: string, more: object = {}) =>
  ({ model, prompt: "a red apple", size: "64x64" as "auto", seed: 7, num_steps: 2, ...more }) as {
    readonly model: string
    readonly prompt: string
  }
const draw = async (model: string, more: object = {}) => {
  const { data } = await client.images.generate(body(model, more))
  return Buffer.from(data?.[0]?.b64_json ?? "", "base64")
}
const sizeOf = async (png: Buffer) => {
  const { width, height, format } = await sharp(png).metadata()
  return [format, width, height]
}

describe.each(["sd", "flux2"])("a pipeline: %s", (model) => {
  it("draws the same bytes for the same seed, alone and beside others", async () => {
    const alone = await draw(model)
    expect(await sizeOf(alone)).toEqual(["png", 64, 64])
    const [same, other] = await Promise.all([draw(model), draw(model, { seed: 8 })])
    expect(same.equals(alone)).toBe(true)
    expect(other.equals(alone)).toBe(false)
  })

  it("edits a file, and sends previews on the way", async () => {
    const red = await plainImage(100, 70, "red").png().toBuffer()
    const image = await toFile(red, "red.png", { type: "image/png" })
    // with fewer steps an edit by noise has none before its last
    const { size: _, ...edit } = body(model, { num_steps: 4 }) as {
      readonly size?: string
    } & ReturnType<typeof body>
    const { data } = await client.images.edit({ ...edit, image })
    expect(await sizeOf(Buffer.from(data?.[0]?.b64_json ?? "", "base64"))).toEqual(["png", 96, 64])
    const stream = await client.images.edit({ ...edit, image, stream: true, partial_images: 1 })
    const types = []
    for await (const { type } of stream) types.push(type)
    expect(types).toEqual(["image_edit.partial_image", "image_edit.completed"])
  })

  it("refuses what is no picture by its place, and goes on", async () => {
    for (const [what, bytes] of Object.entries(await brokenImages())) {
      const reply = await fetch(`${platform.url}/v1/images/edits`, {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ ...body(model), image: bytes.toString("base64") }),
      })
      const { error } = (await reply.json()) as { error?: { param: string } }
      expect([what, reply.status, error?.param]).toEqual([what, 400, "image"])
    }
    expect(await sizeOf(await draw(model))).toEqual(["png", 64, 64])
  })
})

it("reads sources of every kind, and draws in the size that a viewer shows", async () => {
  const red = () => plainImage(100, 70, "red")
  const frames = await Promise.all(
    ["red", "blue"].map((colour) => plainImage(100, 70, colour).png().toBuffer()),
  )
  const kinds: Readonly<Record<string, Buffer>> = {
    jpeg: await red().jpeg({ progressive: true }).toBuffer(),
    webp: await red().webp({ lossless: true }).toBuffer(),
    gif: await red().gif().toBuffer(),
    cmyk: await red().toColourspace("cmyk").jpeg().toBuffer(),
    "16 bits": await red().toColourspace("rgb16").png().toBuffer(),
    grey: await red().grayscale().png().toBuffer(),
    palette: await red().png({ palette: true }).toBuffer(),
    alpha: await red().ensureAlpha(0.3).png().toBuffer(),
    animated: await sharp(frames, { join: { animated: true } })
      .gif()
      .toBuffer(),
    "on its side": await plainImage(70, 100, "red")
      .withMetadata({ orientation: 6 })
      .jpeg()
      .toBuffer(),
  }
  for (const [kind, bytes] of Object.entries(kinds)) {
    const image = await toFile(bytes, kind)
    const { size: _, ...edit } = body("sd") as { readonly size?: string } & ReturnType<typeof body>
    const { data } = await client.images.edit({ ...edit, image })
    const drawn = await sizeOf(Buffer.from(data?.[0]?.b64_json ?? "", "base64"))
    expect([kind, ...drawn]).toEqual([kind, "png", 96, 64])
  }
  const pixel = await toFile(await plainImage(1, 1, "red").png().toBuffer(), "pixel.png")
  const { data } = await client.images.edit({ ...body("sd"), image: pixel })
  expect(await sizeOf(Buffer.from(data?.[0]?.b64_json ?? "", "base64"))).toEqual(["png", 64, 64])
})

it("what safety-images refuses is drawn by no model, and counted", async () => {
  for (const more of [{}, { headers: { "X-Dry-Run": "1" } }])
    await expect(
      client.images.generate(body("sd", { prompt: "n4ked w0man, p0rn" }), more),
    ).rejects.toMatchObject({ status: 400, code: "content_policy_violation", param: "prompt" })
  const metrics = await (await fetch(`${platform.url}/metrics`)).text()
  expect(metrics).toMatch(/^rakit_safety_refusals_total\{stage="prompt",category="\w+"\} 2$/m)
  expect(platform.output().stdout).not.toContain("w0man")
})

it("a LoRA changes the picture by its strength, and leaves no trace", async () => {
  const before = await draw("sd")
  const [weak, strong] = await Promise.all([
    draw("sd", { lora: "dark", lora_strength: 0.3 }),
    draw("sd", { lora: "dark", lora_strength: 1.5 }),
  ])
  const after = await draw("sd", { lora: "none" })
  const pixels = (png: Buffer) => sharp(png).raw().toBuffer()
  expect(after.equals(before)).toBe(true)
  expect((await pixels(weak)).equals(await pixels(before))).toBe(false)
  expect((await pixels(weak)).equals(await pixels(strong))).toBe(false)
})
