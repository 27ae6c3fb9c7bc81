/*
 * Draws the pictures of all packages: `node render.mjs PACKAGES CLIPART OUT` writes OUT/sprites.bin
 * (RGBA, SIZE x SIZE each) and OUT/sprites.jsonl (one line each: set, name, char, tags, mono), the same as
 * OUT/clipart.* and, for the style that is kept out of the training, OUT/heldout.*.
 */
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"

const sharp = createRequire(import.meta.url)("sharp")
sharp.concurrency(1)
sharp.cache(false)
const SIZE = 160
const [packages, clipart, out] = process.argv.slice(2)

const json = (...path) => JSON.parse(readFileSync(join(packages, ...path), "utf8"))
const annotations = (language) =>
  json("cldr-annotations-full", "annotations", language, "annotations.json").annotations.annotations
const bare = (character) => character.replaceAll("\u{fe0f}", "")

/** The default emoji only: one code point, no skin tone, letter, flag or family. */
const isPlain = (codes) => codes.length === 1 && codes[0] > 0x2190

const emojiOf = (set) =>
  Object.entries(json("@iconify-json", set, "chars.json")).flatMap(([hex, name]) => {
    const codes = hex
      .split("-")
      .map((code) => Number.parseInt(code, 16))
      .filter((code) => code !== 0xfe0f)
    return isPlain(codes) ? [{ icon: name, char: String.fromCodePoint(...codes) }] : []
  })

const svgOf = (icons, name) => {
  const icon = icons.icons[name] ?? icons.icons[icons.aliases?.[name]?.parent]
  if (icon === undefined) return undefined
  const [width, height] = [icon.width ?? icons.width ?? 16, icon.height ?? icons.height ?? 16]
  const box = `${icon.left ?? 0} ${icon.top ?? 0} ${width} ${height}`
  const open = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}"`
  return `${open} width="${SIZE}" height="${SIZE}">${icon.body.replaceAll("currentColor", "#000")}</svg>`
}

const emojiSet = (set, mono = false) => {
  const icons = json("@iconify-json", set, "icons.json")
  return emojiOf(set).map(({ icon, char }) => ({
    set,
    name: icon,
    char,
    mono,
    draw: () => svgOf(icons, icon),
  }))
}

const iconSet = (set, mono, keep, rename = (name) => name) => {
  const icons = json("@iconify-json", set, "icons.json")
  return Object.keys(icons.icons)
    .filter(keep)
    .map((icon) => ({ set, name: rename(icon), mono, draw: () => svgOf(icons, icon) }))
}

const lucide = () => {
  const tags = json("lucide-static", "tags.json")
  return Object.keys(tags).map((name) => ({
    set: "lucide",
    name,
    tags: tags[name],
    mono: true,
    draw: () =>
      readFileSync(join(packages, "lucide-static", "icons", `${name}.svg`), "utf8").replaceAll(
        "currentColor",
        "#000",
      ),
  }))
}

/** Folders of clip art that hold patterns or one thing many times. */
const dull = /stars\/|jigsaw|patterns|gradients|icons\/|cards\/|flowchart|semaphore|domino|chess/

const clipartSet = () =>
  readdirSync(clipart, { recursive: true })
    .filter((path) => path.endsWith(".png") && !dull.test(path))
    .sort()
    .map((path) => ({
      set: "openclipart",
      name: path,
      mono: false,
      draw: () => join(clipart, path),
    }))

const unnumbered = (name) => name.replace(/-\d+(px)?$/, "")
const trained = () => [
  ...["fluent-emoji", "fluent-emoji-flat", "emojione", "twemoji", "fxemoji"].flatMap((set) =>
    emojiSet(set),
  ),
  ...emojiSet("fluent-emoji-high-contrast", true),
  ...iconSet("streamline-emojis", false, () => true, unnumbered),
  ...iconSet("flat-color-icons", false, () => true),
  ...iconSet("streamline-ultimate-color", false, (name) => !/logo|file/.test(name), unnumbered),
  ...iconSet(
    "streamline-plump-color",
    false,
    (name) => name.endsWith("-flat"),
    (name) => unnumbered(name.replace(/-flat$/, "")),
  ),
  ...iconSet(
    "streamline-kameleon-color",
    false,
    (name) => !name.endsWith("-duo"),
    (name) => unnumbered(name),
  ),
  ...iconSet(
    "meteocons",
    false,
    (name) => name.endsWith("-fill"),
    (name) => name.slice(0, -5),
  ),
  ...iconSet("marketeq", false, () => true, unnumbered),
  ...lucide(),
  ...iconSet("game-icons", true, (name) => !/abstract|^card-/.test(name)),
  ...iconSet("healthicons", true, (name) => !/negative|outline|24px/.test(name)),
  ...iconSet("fa6-solid", true, () => true),
  ...iconSet("temaki", true, () => true),
  ...iconSet("maki", true, (name) => !/-1[15]$/.test(name)),
  ...iconSet("mdi", true, (name) => !/outline|off$|numeric|alpha-|-\d/.test(name)),
]

/** Clip art is large: trimming it as it is takes most of the time. */
const shrunk = (image) =>
  sharp(image)
    .resize(2 * SIZE, 2 * SIZE, { fit: "inside", withoutEnlargement: true })
    .png({ compressionLevel: 0 })
    .toBuffer()

/** One picture on a transparent square of SIZE, or undefined where it can't be drawn. */
const drawn = async (sprite) => {
  const source = sprite.draw()
  if (source === undefined) return undefined
  const image = typeof source === "string" && source.startsWith("<") ? Buffer.from(source) : source
  const clear = { r: 0, g: 0, b: 0, alpha: 0 }
  try {
    const small = sprite.set === "openclipart" ? await shrunk(image) : image
    return await sharp(small)
      .trim({ background: clear, threshold: 1 })
      .resize(SIZE, SIZE, { fit: "contain", background: clear })
      .toColourspace("srgb")
      .ensureAlpha()
      .raw()
      .toBuffer()
  } catch {
    return undefined
  }
}

const write = async (sprites, file) => {
  const bytes = openSync(join(out, `${file}.bin`), "w")
  const lines = []
  for (const sprite of sprites) {
    const pixels = await drawn(sprite)
    if (pixels?.length !== SIZE * SIZE * 4) continue
    writeSync(bytes, pixels)
    const english = sprite.char && cldr.en[sprite.char]
    const indonesian = sprite.char && cldr.id[sprite.char]
    const { draw, ...line } = sprite
    lines.push(JSON.stringify({ ...line, english, indonesian }))
    if (lines.length % 2000 === 0) console.log(file, lines.length, sprite.set)
  }
  closeSync(bytes)
  writeFileSync(join(out, `${file}.jsonl`), `${lines.join("\n")}\n`)
  console.log(file, lines.length)
}

const cldr = Object.fromEntries(
  ["en", "id"].map((language) => [
    language,
    Object.fromEntries(
      Object.entries(annotations(language)).map(([char, { default: words, tts }]) => [
        bare(char),
        { name: tts?.[0], words },
      ]),
    ),
  ]),
)
await write(emojiSet("noto"), "heldout")
await write(trained(), "sprites")
await write(clipartSet(), "clipart")
