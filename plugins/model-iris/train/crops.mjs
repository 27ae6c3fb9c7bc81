/*
 * Draws the decoder's training crops: `node crops.mjs PACKAGES OUT [PER_ICON] [PART]` writes OUT/crops.bin
 * (RGBA, 256 x 256 each, cut out of icons drawn 280 to 900 pixels large) and, of every twentieth icon,
 * OUT/held.bin. PART (0 to 1) of all icons are drawn.
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"

const [packages, out, perIcon = "4", part = "1"] = process.argv.slice(2)
const SIDE = 256
const sharp = createRequire(join(packages, "crops.mjs"))("sharp")
sharp.cache(false)
sharp.concurrency(1)

/** A small generator (mulberry32), so that the same crops come out again. */
const randomOf = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let value = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
  return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
}
const random = randomOf(19)

const SETS = { "fluent-emoji": 3000, noto: 900, "fluent-emoji-flat": 700, "flat-color-icons": 200 }
const LUCIDE = 200

const svgOf = (icons, icon, size) => {
  const [width, height] = [icon.width ?? icons.width ?? 16, icon.height ?? icons.height ?? 16]
  const box = `${icon.left ?? 0} ${icon.top ?? 0} ${width} ${height}`
  const scale = size / Math.max(width, height)
  const head = `viewBox="${box}" width="${width * scale}" height="${height * scale}"`
  const body = icon.body.replaceAll("currentColor", "#000")
  return `<svg xmlns="http://www.w3.org/2000/svg" ${head}>${body}</svg>`
}

const shuffled = (list) =>
  list
    .map((item) => [random(), item])
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item)

const iconSet = ([set, most]) => {
  const icons = JSON.parse(readFileSync(join(packages, "@iconify-json", set, "icons.json"), "utf8"))
  const names = Object.keys(icons.icons).filter((name) => !/skin|-(light|medium|dark)/.test(name))
  return shuffled(names)
    .slice(0, most)
    .map((name) => (size) => svgOf(icons, icons.icons[name], size))
}

const lucide = () => {
  const tags = JSON.parse(readFileSync(join(packages, "lucide-static", "tags.json"), "utf8"))
  return shuffled(Object.keys(tags))
    .slice(0, LUCIDE)
    .map((name) => (size) => {
      const file = readFileSync(join(packages, "lucide-static", "icons", `${name}.svg`), "utf8")
      return file
        .replace(/\swidth="[^"]*"/, ` width="${size}"`)
        .replace(/\sheight="[^"]*"/, ` height="${size}"`)
        .replaceAll("currentColor", "#000")
    })
}

/** How much a window's colours and alpha differ from each other: 0 where it is flat. */
const busy = (pixels) => {
  let [sum, squares, count] = [0, 0, 0]
  for (let at = 0; at < pixels.length; at += 4 * 37) {
    const value = (pixels[at] + pixels[at + 1] + pixels[at + 2]) / 3 + pixels[at + 3]
    sum += value
    squares += value * value
    count++
  }
  return Math.sqrt(squares / count - (sum / count) ** 2)
}

const windowOf = (data, width, left, top) => {
  const window = Buffer.alloc(SIDE * SIDE * 4)
  for (let row = 0; row < SIDE; row++) {
    const from = ((top + row) * width + left) * 4
    data.copy(window, row * SIDE * 4, from, from + SIDE * 4)
  }
  return window
}

const cropsOf = async (draw, count) => {
  const size = random() < 0.6 ? 700 + random() * 200 : 280 + random() * 320
  const padded = await sharp(Buffer.from(draw(Math.round(size))))
    .ensureAlpha()
    .extend({
      top: 96,
      left: 96,
      bottom: 96,
      right: 96,
      background: { r: 0, g: 0, b: 0, alpha: 0 },
    })
    .toColourspace("srgb")
    .raw()
    .toBuffer({ resolveWithObject: true })
  const { data, info } = padded
  const found = []
  for (let attempt = 0; attempt < 3 * count && found.length < count; attempt++) {
    const left = Math.floor(random() * (info.width - SIDE))
    const top = Math.floor(random() * (info.height - SIDE))
    const window = windowOf(data, info.width, left, top)
    if (busy(window) > 12) found.push(window)
  }
  return found
}

const icons = shuffled([...Object.entries(SETS).flatMap(iconSet), ...lucide()])
const chosen = icons.slice(0, Math.ceil(icons.length * Number(part)))
const [crops, held] = ["crops.bin", "held.bin"].map((name) => openSync(join(out, name), "w"))
for (const [index, draw] of chosen.entries()) {
  const windows = await cropsOf(draw, Number(perIcon)).catch(() => [])
  for (const window of windows) writeSync(index % 20 === 0 ? held : crops, window)
  if (index % 200 === 0) console.log(index, chosen.length)
}
closeSync(crops)
closeSync(held)
