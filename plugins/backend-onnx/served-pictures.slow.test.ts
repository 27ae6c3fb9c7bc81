import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { parse, stringify } from "yaml"
import { plainImage } from "../../testing/images.ts"
import { type Platform, runCli, startPlatform } from "../../testing/platform.ts"
import { diffusionFolder } from "./diffusion/transformers/testing/run-part.ts"

/** Pictures through the whole server, by a FLUX of random weights with a LoRA. */
const folder = mkdtempSync(join(tmpdir(), "rakit-pictures-"))
const model = diffusionFolder("flux")
const config = join(folder, "pictures.yaml")
let platform: Platform
let client: OpenAI

beforeAll(async () => {
  const shared = parse(
    readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8"),
  ) as { plugins: Record<string, unknown> }
  const { "../testing/fakes/backend.ts": _, ...plugins } = shared.plugins
  writeFileSync(
    config,
    stringify({
      ...shared,
      plugins: { ...plugins, "backend-onnx": { threads: 1 }, "endpoint-images": {} },
      models: [
        {
          id: "svc-iris",
          task: "image",
          modalities: ["text", "image"],
          capabilities: ["image_generation", "image_editing"],
          limits: { contextTokens: 2_000 },
          price: { image: 750 },
          backend: "onnx",
          options: { precision: "fp32" },
          sources: [{ url: `file:${model}/` }],
          adapters: [
            {
              id: "dark",
              sources: [{ url: `file:${join(model, "../lora/flux/peft.safetensors")}` }],
            },
          ],
        },
      ],
    }),
  )
  platform = await startPlatform({ config })
  const { url, credentials } = platform
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })
})
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true, force: true })
})

const apple = { model: "svc-iris", prompt: "an apple", size: "96x64" as "auto" }
const own = (more: object) => more as object
const generate = async (more: object = {}) => {
  const made = client.images.generate({ ...apple, ...own({ seed: 5, ...more }) })
  const { data, response } = await made.withResponse()
  return { png: data.data?.[0]?.b64_json ?? "", headers: response.headers }
}
const sizeOf = (base64: string) => {
  const bytes = Buffer.from(base64, "base64")
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)]
}

it("gives the same bytes for a seed, alone and beside another with a LoRA, for Rp750", async () => {
  const { png, headers } = await generate()
  expect(sizeOf(png)).toEqual([96, 64])
  expect(headers.get("x-cost-idr")).toBe("750")
  expect(headers.get("server-timing")).toMatch(/queue.*encode.*denoise.*decode.*png/)
  const [dark, again] = await Promise.all([generate({ lora: "dark" }), generate()])
  expect(again.png).toBe(png)
  expect(dark.png).not.toBe(png)
  expect((await generate({ seed: 6 })).png).not.toBe(png)
})

it("edits a picture, and streams previews", async () => {
  const image = await toFile(await plainImage(96, 64, "red").png().toBuffer(), "red.png", {
    type: "image/png",
  })
  const edited = await client.images.edit({ ...apple, image, ...own({ seed: 5, strength: 0.5 }) })
  expect(sizeOf(edited.data?.[0]?.b64_json ?? "")).toEqual([96, 64])
  const events = await client.images.generate({
    ...apple,
    stream: true,
    partial_images: 2,
    ...own({ seed: 5 }),
  })
  const types: string[] = []
  for await (const event of events) types.push(event.type)
  expect(types).toEqual([
    "image_generation.partial_image",
    "image_generation.partial_image",
    "image_generation.completed",
  ])
})

it("is made again by its receipt, byte by byte: with a random seed, a LoRA, a source, as a stream", async () => {
  const image = (await plainImage(96, 64, "red").png().toBuffer()).toString("base64")
  const asks = {
    random: ["generations", { ...apple, lora: "dark" }],
    minus: ["generations", { ...apple, seed: -1 }],
    stream: ["generations", { ...apple, seed: 3, stream: true, partial_images: 1 }],
    edit: ["edits", { ...apple, image, strength: 0.5, num_inference_steps: 3 }],
  } as const
  const headers = {
    authorization: `Bearer ${platform.credentials.api_key}`,
    "content-type": "application/json",
  }
  const replay = async (name: string, receipt: unknown, request: object) => {
    const files = [join(folder, `${name}.json`), join(folder, `${name}-request.json`)] as const
    for (const [at, content] of [receipt, request].entries())
      writeFileSync(files[at]!, JSON.stringify(content))
    const { code, stdout, stderr } = await runCli(
      ["replay", ...files, config, "--json"],
      platform.env,
    )
    return { code, ...JSON.parse(stdout || JSON.stringify({ stderr })) }
  }
  for (const [name, [path, body]] of Object.entries(asks)) {
    const reply = await fetch(`${platform.url}/v1/images/${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    })
    expect([name, reply.status]).toEqual([name, 200])
    await reply.text()
    const at = `${platform.url}/v1/receipts/${reply.headers.get("x-call-id")}`
    const receipt = await vi.waitFor(async () => {
      const found = await fetch(at, { headers })
      expect(found.status).toBe(200)
      return found.json()
    })
    expect([name, await replay(name, receipt, body)]).toMatchObject([
      name,
      { code: 0, result: "equal", differences: [] },
    ])
    if (name !== "edit") continue
    const other = await replay("other", receipt, { ...body, prompt: "a pear" })
    expect(other).toMatchObject({ code: 2, differences: ["request"] })
  }
}, 240_000)

it("keeps what its entry promises", async () => {
  const { data } = await client.models.list()
  expect(data).toMatchObject([
    { id: "svc-iris", capabilities: ["image_generation", "image_editing"] },
  ])
})
