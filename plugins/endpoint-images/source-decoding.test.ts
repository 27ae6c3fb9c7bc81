import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { brokenImages, plainImage, writtenPng } from "../../testing/images.ts"
import { readSources } from "./source-decoding.ts"
import { openEndpoints } from "./testing/open-endpoints.ts"

const { edit, lastRequest } = openEndpoints()
const red = () => plainImage(96, 64, "red")
const png = await red().png().toBuffer()
const base64 = png.toString("base64")

const problemOf = async (more: object) => {
  const { status, json } = await edit(more)
  const { code, param, message } = json as Record<string, string>
  return status === 200 ? "ok" : [status, code, param, message]
}
const wrong = (param: string, why = "") => [
  400,
  "invalid_request_error",
  param,
  expect.stringMatching(new RegExp(`^${param.replace(/[[\]]/g, "\\$&")}: .*${why}`)),
]

describe("source images", () => {
  it.each(["png", "jpeg", "webp", "gif"] as const)(
    "in %s, raw or as a data URI",
    async (format) => {
      const bytes = await red().toFormat(format).toBuffer()
      const text = bytes.toString("base64")
      for (const image of [
        text,
        `data:image/${format};base64,${text}`,
        `DATA:image/png;base64,${text}`,
      ]) {
        expect(await problemOf({ image })).toBe("ok")
        expect(lastRequest()).toMatchObject({ images: [bytes], width: 96, height: 64 })
      }
    },
  )

  it("come as image or images, never both, one to five", async () => {
    const images = Array<string>(5).fill(base64)
    expect(await problemOf({ images })).toBe("ok")
    expect(lastRequest()?.images).toHaveLength(5)
    expect(await problemOf({ image: null, images: [base64] })).toBe("ok")
    expect(await problemOf({ image: base64, images: [base64] })).toEqual(wrong("images"))
    expect(await problemOf({ images: [...images, base64] })).toEqual(wrong("images", "at most 5"))
    expect(await problemOf({ images: [] })).toEqual(wrong("images"))
    expect(await problemOf({})).toEqual(wrong("image", "missing"))
    expect(await problemOf({ image: null })).toEqual(wrong("image", "missing"))
  })

  it.each([
    ["", ""],
    [5, "base64"],
    [[base64], "base64"],
    ["not base64!", "valid base64"],
    [base64.slice(0, -1), "valid base64"],
    [`${base64}\n`, "valid base64"],
    [` ${base64}`, "valid base64"],
    [base64.replaceAll("+", "-").replaceAll("/", "_"), "valid base64"],
    ["====", "valid base64"],
    [base64.replace("R", "Œ"), "valid base64"], // U+0152: its low byte is that of R
    [base64.replace("R", "Ð"), "valid base64"],
    [`${base64.slice(0, 20)}====${base64.slice(24)}`, "valid base64"],
    [`${base64.slice(0, 20)}AA==${base64.slice(24)}`, "valid base64"],
    [`${base64.slice(0, 20)}\n${base64.slice(21)}`, "valid base64"],
    [`${base64.slice(0, 20)}-${base64.slice(21)}`, "valid base64"],
    ["AAAA====", "valid base64"],
    [`data:image/png;base64,${base64.slice(1)}`, "valid base64"],
    [`data:image/png,${base64}`, "data URI"],
    [`data:image/svg+xml;base64,${base64}`, "data URI"],
    ["https://example.com/a.png", "not fetched"],
    [Buffer.from("%PDF-1.7 hello").toString("base64"), "PNG, JPEG, WebP or GIF"],
    [Buffer.from("<svg/>").toString("base64"), "PNG, JPEG, WebP or GIF"],
    [png.subarray(0, 8).toString("base64"), "damaged"],
    [Buffer.from("\xff\xd8\xff", "latin1").toString("base64"), "damaged"],
  ])("that are none are refused by place: %j", async (image, why) => {
    expect(await problemOf({ image })).toEqual(wrong("image", why))
    expect(await problemOf({ images: [base64, image] })).toEqual(wrong("images[1]", why))
  })

  it("are bounded by their headers, before anything is decoded", async () => {
    for (const bytes of [
      writtenPng(30_000, 30_000, new Uint8Array(9)),
      writtenPng(2 ** 31 - 1, 2 ** 31 - 1, new Uint8Array(9)),
      writtenPng(100_000, 1, new Uint8Array(9)),
    ])
      expect(await problemOf({ image: bytes.toString("base64") })).toEqual(wrong("image", "pixels"))
    expect(await problemOf({ image: writtenPng(0, 9).toString("base64") })).toEqual(
      wrong("image", "damaged"),
    )
  })

  it("never hang or crash the endpoint", async () => {
    for (const [what, bytes] of Object.entries(await brokenImages())) {
      const { status } = await edit({ image: bytes.toString("base64") })
      expect([200, 400], what).toContain(status)
    }
  })
})

it("tens of megabytes of base64 are decoded in pieces, between which others have their turn", async () => {
  const large = Buffer.concat([png, Buffer.alloc(12 * 2 ** 20)])
  let turns = 0
  let isDone = false
  const other = () => {
    turns++
    if (!isDone) setImmediate(other)
  }
  setImmediate(other)
  const [source] = await Effect.runPromise(readSources({ image: large.toString("base64") }))
  isDone = true
  expect(large.equals(source.bytes)).toBe(true)
  expect(turns).toBeGreaterThanOrEqual(15)
})
