import { readFileSync } from "node:fs"
import { join } from "node:path"
import sharp from "sharp"
import { fixtureFolder } from "./fixtures.ts"

/** The tiny chat models that read images. */
export const sightedModels = ["idefics3", "llava-clip", "llava-siglip", "qwen2-vl", "qwen2-5-vl"]

export const sightedFolder = (name: string): string => join(fixtureFolder("sighted"), name)

interface Content {
  readonly type: "text" | "image"
  readonly text?: string
}

interface File {
  readonly images: readonly {
    readonly width: number
    readonly height: number
    readonly rows: number
    readonly columns: number
    readonly tiles: readonly string[]
    readonly embedded: readonly (readonly number[])[]
  }[]
  readonly chats: readonly {
    readonly messages: readonly {
      readonly role: "user" | "assistant"
      readonly content: readonly Content[]
    }[]
    readonly images: readonly number[]
    readonly ids: readonly number[]
    readonly greedy: readonly number[]
  }[]
}

/** What transformers makes of images and chats, see fixtures/make-sighted.py. */
export const expectedSight = (name: string) => {
  const json = readFileSync(join(sightedFolder(name), "expected.json"), "utf8")
  const { images, chats } = JSON.parse(json) as File
  const decoded = images.map((image) => ({
    ...image,
    tiles: image.tiles.map((tile) => Buffer.from(tile, "base64")),
  }))
  return { images: decoded, chats }
}

const slope = (at: number, period: number) =>
  Math.floor((Math.abs((at % (2 * period)) - period) * 255) / period)

/** The picture that fixtures/make-sighted.py draws. */
export const drawnPng = (width: number, height: number): Promise<Buffer> => {
  const pixels = new Uint8Array(width * height * 3)
  for (let at = 0; at < width * height; at++) {
    const [x, y] = [at % width, Math.floor(at / width)]
    pixels[3 * at] = slope(2 * x + y, 97)
    pixels[3 * at + 1] = slope(x + 3 * y, 61)
    pixels[3 * at + 2] = ((x >> 4) + (y >> 4)) & 1 ? 230 : 25
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer()
}
