/*
 * Draws every picture of the packages once: `node render.mjs PACKAGES OUT [SIZE]` writes OUT/sprites.bin
 * (RGBA, SIZE x SIZE each, trimmed to what is drawn) and OUT/sprites.jsonl (one line each: set, name,
 * char, group, tags, english and indonesian names and keywords of CLDR).
 */
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"

const [packages, out, size] = process.argv.slice(2)
const SIZE = Number(size ?? 128)
const sharp = createRequire(join(packages, "render.mjs"))("sharp")
sharp.cache(false)

const json = (...path) => JSON.parse(readFileSync(join(packages, ...path), "utf8"))
const bare = (character) => character.replaceAll("\u{fe0f}", "")
const SKIN = /1f3f[b-f]/
const hexOf = (character) =>
  [...bare(character)].map((c) => c.codePointAt(0).toString(16)).join("-")

/** CLDR's names of each emoji: character -> { name, words }. */
const annotations = (language) => {
  const plain = json("cldr-annotations-full", "annotations", language, "annotations.json")
  const derived = json(
    "cldr-annotations-derived-full",
    "annotationsDerived",
    language,
    "annotations.json",
  )
  return Object.fromEntries(
    [plain.annotations, derived.annotationsDerived].flatMap(({ annotations: all }) =>
      Object.entries(all).map(([char, { default: words, tts }]) => [
        bare(char),
        { name: tts?.[0], words },
      ]),
    ),
  )
}
const [english, indonesian] = ["en", "id"].map(annotations)

const emoji = Object.fromEntries(
  Object.entries(json("unicode-emoji-json", "data-by-emoji.json")).map(([char, about]) => [
    hexOf(char),
    { char: bare(char), group: about.group, title: about.name },
  ]),
)

const svgOf = (icons, name) => {
  const icon = icons.icons[name] ?? icons.icons[icons.aliases?.[name]?.parent]
  if (icon === undefined) return undefined
  const [width, height] = [icon.width ?? icons.width ?? 16, icon.height ?? icons.height ?? 16]
  const box = `${icon.left ?? 0} ${icon.top ?? 0} ${width} ${height}`
  const open = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}"`
  const scale = (2 * SIZE) / Math.max(width, height)
  const dimensions = `width="${width * scale}" height="${height * scale}"`
  return `${open} ${dimensions}>${icon.body.replaceAll("currentColor", "#000")}</svg>`
}

/** An iconify set of emoji; `chars` names the set whose table says which icon is which character. */
const emojiSet = (set, chars = set) => {
  const icons = json("@iconify-json", set, "icons.json")
  return Object.entries(json("@iconify-json", chars, "chars.json"))
    .map(([hex, name]) => [hex.replaceAll("-fe0f", ""), name])
    .filter(([hex]) => !SKIN.test(hex) && emoji[hex] !== undefined)
    .map(([hex, name]) => ({ set, name, ...emoji[hex], draw: () => svgOf(icons, name) }))
}

const twemoji = () =>
  Object.entries(emoji)
    .filter(([hex]) => !SKIN.test(hex))
    .map(([hex, about]) => ({
      set: "twemoji",
      name: about.title,
      ...about,
      draw: () => {
        const file = [hex, hex.replace(/^([0-9a-f]{2})$/, "00$1")].map((name) =>
          join(packages, "@twemoji", "svg", `${name}.svg`),
        )
        return scaled(readFileSync(file[0], "utf8"))
      },
    }))

/** A whole SVG file at twice the size that is kept. */
const scaled = (svg) =>
  svg
    .replace(/<svg([^>]*?)\swidth="[^"]*"/, "<svg$1")
    .replace(/<svg([^>]*?)\sheight="[^"]*"/, "<svg$1")
    .replace("<svg", `<svg width="${2 * SIZE}" height="${2 * SIZE}"`)
    .replaceAll("currentColor", "#000")

const lucide = () => {
  const tags = json("lucide-static", "tags.json")
  return Object.keys(tags).map((name) => ({
    set: "lucide",
    name,
    tags: tags[name],
    draw: () =>
      scaled(readFileSync(join(packages, "lucide-static", "icons", `${name}.svg`), "utf8")),
  }))
}

const flatColour = () => {
  const icons = json("@iconify-json", "flat-color-icons", "icons.json")
  return Object.keys(icons.icons).map((name) => ({
    set: "flat-color-icons",
    name,
    draw: () => svgOf(icons, name),
  }))
}

const clear = { r: 0, g: 0, b: 0, alpha: 0 }

/** One picture on a transparent square of SIZE, or undefined where it can't be drawn. */
const drawn = async ({ draw }) => {
  try {
    const large = await sharp(Buffer.from(draw())).png({ compressionLevel: 0 }).toBuffer()
    return await sharp(large)
      .trim({ background: clear, threshold: 1 })
      .resize(SIZE, SIZE, { fit: "contain", background: clear, kernel: "lanczos3" })
      .toColourspace("srgb")
      .ensureAlpha()
      .raw()
      .toBuffer()
  } catch {
    return undefined
  }
}

const sprites = [
  ...emojiSet("fluent-emoji", "fluent-emoji-flat"),
  ...emojiSet("noto"),
  ...emojiSet("fluent-emoji-flat"),
  ...flatColour(),
  ...lucide(),
  ...twemoji(),
]
const bytes = openSync(join(out, "sprites.bin"), "w")
const lines = []
for (let start = 0; start < sprites.length; start += 8) {
  const group = sprites.slice(start, start + 8)
  const pictures = await Promise.all(group.map(drawn))
  for (const [index, pixels] of pictures.entries()) {
    if (pixels?.length !== SIZE * SIZE * 4) continue
    writeSync(bytes, pixels)
    const { draw, title, ...line } = group[index]
    const about = line.char && { english: english[line.char], indonesian: indonesian[line.char] }
    lines.push(JSON.stringify({ ...line, title, ...about }))
  }
  if (start % 800 === 0) console.log(start, sprites.length, lines.length)
}
closeSync(bytes)
writeFileSync(join(out, "sprites.jsonl"), `${lines.join("\n")}\n`)
