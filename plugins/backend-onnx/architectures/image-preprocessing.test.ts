import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, describe, expect, test } from "vitest"
import { placementOf } from "./image-placement.ts"
import {
  imagePreprocessing,
  type PreprocessingDefaults,
  patchPreprocessing,
} from "./image-preprocessing.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-preprocessing-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const exact: PreprocessingDefaults = {
  size: { width: 32, height: 32 },
  mean: [0.5, 0.5, 0.5],
  std: [0.5, 0.5, 0.5],
  resample: 3,
}
const cropped: PreprocessingDefaults = {
  ...exact,
  size: { shortest_edge: 32 },
  crop: { width: 32, height: 32 },
}

const read = (json: object | undefined, defaults = exact, file = "preprocessor_config.json") => {
  const folder = mkdtempSync(join(root, "folder-"))
  if (json) writeFileSync(join(folder, file), JSON.stringify(json))
  return imagePreprocessing(folder, 32, defaults)
}

describe("preprocessor_config.json", () => {
  test("is read as the image processors write it", () => {
    expect(
      read(
        {
          do_resize: true,
          size: { shortest_edge: 40 },
          resample: 2,
          do_center_crop: true,
          crop_size: { height: 32, width: 32 },
          do_rescale: true,
          rescale_factor: 0.5,
          image_mean: [1, 2, 3],
          image_std: [4, 5, 6],
        },
        cropped,
      ),
    ).toEqual({
      width: 32,
      height: 32,
      resize: { mode: "shortest-edge", edge: 40 },
      kernel: "linear",
      mean: [1, 2, 3],
      std: [4, 5, 6],
      rescale: 0.5,
    })
  })

  test("has the family's defaults where it is missing, or says nothing", () => {
    const wanted = { width: 32, resize: { mode: "exact" }, kernel: "cubic", rescale: 1 / 255 }
    for (const json of [undefined, {}]) {
      expect(read(json)).toMatchObject(wanted)
      expect(read(json, cropped).resize).toEqual({ mode: "shortest-edge", edge: 32 })
    }
  })

  test("may have numbers for sizes, as old files do", () => {
    const old = read({ size: 48, crop_size: 32 }, cropped)
    expect(old).toMatchObject({
      width: 32,
      height: 32,
      resize: { mode: "shortest-edge", edge: 48 },
    })
    expect(read({ size: 32 }).resize).toEqual({ mode: "exact", width: 32, height: 32 })
  })

  test("may be a part of processor_config.json, with nulls for what is not said", () => {
    const json = { image_processor: { resample: 2, crop_size: null, do_center_crop: null } }
    expect(read(json, exact, "processor_config.json")).toMatchObject({ kernel: "linear" })
  })

  test("may switch off the normalization", () => {
    expect(read({ do_normalize: false, do_rescale: false })).toMatchObject({
      mean: [0, 0, 0],
      std: [1, 1, 1],
      rescale: 1,
    })
  })

  test.each([
    [{ do_resize: false }, /'do_resize' is off/],
    [{ size: { shortest_edge: 32 }, do_center_crop: false }, /'do_center_crop' is off/],
    [{ size: { shortest_edge: 32, longest_edge: 64 } }, /'shortest_edge' and more/],
    [{ size: { height: 64, width: 64 } }, /64 x 64 pixels, the model reads 32 x 32/],
    [{ size: { height: 1e9, width: 32 } }, /'height' is 1000000000/],
    [{ size: 24, crop_size: 32, do_center_crop: true }, /'crop_size' is larger/],
    [{ image_mean: [0.5] }, /three channels/],
    [{ resample: "bicubic" }, /'resample' is not a number/],
  ])("is refused with %j", (json, message) => {
    expect(() => read(json, "crop_size" in json ? cropped : exact)).toThrow(message)
  })
})

describe("a picture's pixels", () => {
  const shortest = read({ size: 40, crop_size: 32 }, cropped)
  const padded = read({
    size: { longest_edge: 30 },
    do_pad: true,
    pad_size: { height: 32, width: 32 },
  })

  test("are where transformers has them", () => {
    expect(placementOf(read({}), { width: 7, height: 900 })).toEqual({
      source: { left: 0, top: 0, width: 7, height: 900 },
      resized: { width: 32, height: 32 },
      final: { width: 32, height: 32 },
      left: 0,
      top: 0,
    })
    // 40 * 101 / 67 = 60.3, and half of 60 - 32 on each side
    expect(placementOf(shortest, { width: 101, height: 67 })).toMatchObject({
      resized: { width: 60, height: 40 },
      left: 14,
      top: 4,
    })
    expect(placementOf(padded, { width: 100, height: 50 })).toMatchObject({
      resized: { width: 30, height: 15 },
      left: -1,
      top: -9,
    })
  })

  test("are whole squares where pictures keep their shape, never more than the model reads", () => {
    const squares = read({}, { ...exact, patches: { side: 8, most: 16 } })
    expect(placementOf(squares, { width: 301, height: 200 }).final).toEqual({
      width: 40,
      height: 24,
    })
    const sides = fc.integer({ min: 1, max: 100_000 })
    fc.assert(
      fc.property(sides, sides, (width, height) => {
        const { source, resized, final, left, top } = placementOf(squares, { width, height })
        expect([source.width, source.height, left, top]).toEqual([width, height, 0, 0])
        expect(final).toEqual(resized)
        expect([final.width % 8, final.height % 8]).toEqual([0, 0])
        expect((final.width * final.height) / 64).toBeLessThanOrEqual(16)
      }),
    )
    const other = (json: object) => () => read(json, { ...exact, patches: { side: 8, most: 16 } })
    expect(other({ patch_size: 16 })).toThrow(/'patch_size' is 16, the model reads 8/)
    expect(other({ max_num_patches: 1e6 })).toThrow(/'max_num_patches' is 1000000/)
  })

  test("are their own where it says so, but for pictures of more pixels than that", () => {
    const own = { ...read({}), resize: { mode: "area", most: 1024 ** 2 } } as const
    expect(placementOf(own, { width: 640, height: 1000 }).final).toEqual({
      width: 640,
      height: 1000,
    })
    // the root of 1048576 / (4000 * 3000) is 0.29561
    expect(placementOf(own, { width: 4000, height: 3000 }).final).toEqual({
      width: 1182,
      height: 886,
    })
    const sides = fc.integer({ min: 1, max: 8192 })
    fc.assert(
      fc.property(sides, sides, (width, height) => {
        const { source, resized, final, left, top } = placementOf(own, { width, height })
        expect([source.width, source.height, left, top]).toEqual([width, height, 0, 0])
        expect(final).toEqual(resized)
        expect(final.width * final.height).toBeLessThanOrEqual(1024 ** 2)
        if (width * height <= 1024 ** 2) expect(final).toEqual({ width, height })
      }),
    )
  })

  test("never become many, however long the picture is", () => {
    const sides = fc.integer({ min: 1, max: 100_000 })
    fc.assert(
      fc.property(
        sides,
        sides,
        fc.constantFrom(shortest, padded, read({})),
        (width, height, by) => {
          const { source, resized, left, top } = placementOf(by, { width, height })
          expect(resized.width * resized.height).toBeLessThanOrEqual(16 * 40 * 40)
          expect(
            Math.min(resized.width, resized.height, source.width, source.height),
          ).toBeGreaterThan(0)
          expect(source.left + source.width).toBeLessThanOrEqual(width)
          expect(source.top + source.height).toBeLessThanOrEqual(height)
          // in the middle, whatever is cut off or added
          expect(Math.abs(2 * left - (resized.width - 32))).toBeLessThanOrEqual(1)
          expect(Math.abs(2 * top - (resized.height - 32))).toBeLessThanOrEqual(1)
        },
      ),
    )
  })
})

describe("pictures in their own shape, as Qwen-VL reads them", () => {
  const folderOf = (json: object) => {
    const folder = mkdtempSync(join(root, "folder-"))
    writeFileSync(join(folder, "preprocessor_config.json"), JSON.stringify(json))
    return folder
  }
  const tower = { patch: 14, merge: 2 }
  const published = { min_pixels: 3136, max_pixels: 12_845_056, patch_size: 14, merge_size: 2 }

  test.each([
    [640, 480, 644, 476],
    [1, 1, 56, 56],
    [4000, 3000, 896, 672],
    [42, 70, 56, 56],
    [98, 126, 112, 112],
  ])("%i x %i pixels are %i x %i, as in transformers", (width, height, wide, high) => {
    const found = patchPreprocessing(folderOf(published), tower)
    expect(placementOf(found, { width, height }).final).toEqual({ width: wide, height: high })
  })

  test("have at most 768 tokens, whatever their shape", () => {
    const found = patchPreprocessing(folderOf(published), tower)
    const side = fc.integer({ min: 1, max: 65_535 })
    fc.assert(
      fc.property(side, side, (width, height) => {
        const { final } = placementOf(found, { width, height })
        expect([final.width % 28, final.height % 28]).toEqual([0, 0])
        expect((final.width * final.height) / 784).toBeLessThanOrEqual(768)
      }),
    )
  })

  test("are refused where the settings are of another tower", () => {
    for (const [json, message] of [
      [{ ...published, patch_size: 16 }, /'patch_size' is 16, the model reads 14/],
      [{ ...published, merge_size: 3 }, /'merge_size' is 3, the model reads 2/],
      [{ min_pixels: 5_000, max_pixels: 4_000 }, /'min_pixels' is 5000, more than 4000/],
    ] as const)
      expect(() => patchPreprocessing(folderOf(json), tower)).toThrow(message)
  })
})
