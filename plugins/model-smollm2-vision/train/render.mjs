/*
 * Draws the things of concepts.json: `node render.mjs PACKAGES CLIPART OUT` writes OUT/train.bin (RGBA, SIZE x
 * SIZE each) and OUT/train.jsonl (one line each: set, name, thing, mono), and the same of the style that
 * is kept out of the training as OUT/held.*.
 */
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, join } from "node:path"

const SIZE = 128
const [packages, clipart, out] = process.argv.slice(2)
const sharp = createRequire(import.meta.url)("sharp")
sharp.concurrency(1)
sharp.cache(false)

const json = (...path) => JSON.parse(readFileSync(join(packages, ...path), "utf8"))
const concepts = JSON.parse(readFileSync(new URL("concepts.json", import.meta.url), "utf8"))
const things = new Map(
  Object.entries(concepts).flatMap(([thing, chars]) => [...chars].map((char) => [char, thing])),
)

const svgOf = (icons, name) => {
  const icon = icons.icons[name] ?? icons.icons[icons.aliases?.[name]?.parent]
  if (icon === undefined) return undefined
  const [width, height] = [icon.width ?? icons.width ?? 16, icon.height ?? icons.height ?? 16]
  const box = `${icon.left ?? 0} ${icon.top ?? 0} ${width} ${height}`
  const open = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}"`
  return `${open} width="${SIZE}" height="${SIZE}">${icon.body.replaceAll("currentColor", "#000")}</svg>`
}

const charsOf = (set) =>
  Object.entries(json("@iconify-json", set, "chars.json")).map(([hex, name]) => {
    const codes = hex.split("-").map((code) => Number.parseInt(code, 16))
    return [name, String.fromCodePoint(...codes.filter((code) => code !== 0xfe0f))]
  })

const joined = (name) => name.replaceAll("-", "")
/** Some sets have names alone: those of the others say which character they are. */
const known = new Map(
  ["fluent-emoji-flat", "twemoji", "noto"].flatMap((set) =>
    charsOf(set).map(([name, char]) => [joined(name), char]),
  ),
)

const emojiSet = (set, mono = false) => {
  const icons = json("@iconify-json", set, "icons.json")
  const chars = charsOf(set)
  const named = Object.keys(icons.icons).map((name) => [name, known.get(joined(name))])
  return (chars.length > 0 ? chars : named).flatMap(([name, char]) => {
    const thing = things.get(char)
    return thing ? [{ set, name, thing, mono, draw: () => svgOf(icons, name) }] : []
  })
}

const kinds = /-(fill|filled|solid|color|face|line|duotone|alt|bold|\d+)$/
const bare = (name) => {
  let short = name.toLowerCase().replaceAll(/[_ .]/g, "-")
  while (kinds.test(short)) short = short.replace(kinds, "")
  return short.replaceAll("-", " ")
}
const thingOf = (name) => {
  const short = bare(name)
  return short in concepts ? short : undefined
}

const iconSet = (set, mono) => {
  const icons = json("@iconify-json", set, "icons.json")
  return Object.keys(icons.icons).flatMap((name) => {
    const thing = /outline|off$|negative/.test(name) ? undefined : thingOf(name)
    return thing ? [{ set, name, thing, mono, draw: () => svgOf(icons, name) }] : []
  })
}

const clipartSet = () =>
  readdirSync(clipart, { recursive: true })
    .filter((path) => path.endsWith(".png") && !path.startsWith("computer/"))
    .sort()
    .flatMap((path) => {
      const thing = thingOf(basename(path, ".png").replaceAll(/[_-]?\w*\d\w*$/g, ""))
      return thing
        ? [{ set: "openclipart", name: path, thing, mono: false, draw: () => join(clipart, path) }]
        : []
    })

/** One picture on a transparent square of SIZE, or undefined where it can't be drawn. */
const drawn = async (sprite) => {
  const source = sprite.draw()
  if (source === undefined) return undefined
  const image = source.startsWith("<") ? Buffer.from(source) : source
  const clear = { r: 0, g: 0, b: 0, alpha: 0 }
  try {
    return await sharp(image)
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
    const { draw, ...line } = sprite
    lines.push(JSON.stringify(line))
  }
  closeSync(bytes)
  writeFileSync(join(out, `${file}.jsonl`), `${lines.join("\n")}\n`)
  const found = new Set(sprites.map(({ thing }) => thing)).size
  console.log(`${file}: ${lines.length} pictures of ${found} things`)
}

await write(emojiSet("noto"), "held")
await write(
  [
    ...["fluent-emoji", "fluent-emoji-flat", "emojione", "twemoji", "fxemoji"].flatMap((set) =>
      emojiSet(set),
    ),
    ...emojiSet("fluent-emoji-high-contrast", true),
    ...["streamline-emojis", "flat-color-icons", "streamline-ultimate-color"].flatMap((set) =>
      iconSet(set, false),
    ),
    ...["streamline-plump-color", "streamline-kameleon-color", "meteocons", "marketeq"].flatMap(
      (set) => iconSet(set, false),
    ),
    ...["game-icons", "healthicons", "fa6-solid", "temaki", "maki", "mdi"].flatMap((set) =>
      iconSet(set, true),
    ),
    ...clipartSet(),
  ],
  "train",
)
