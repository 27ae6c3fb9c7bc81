/**
 * How near drawings come to being refused: drawings.mjs FOLDER [HOW-MANY-OF-EACH-SET], where FOLDER
 * has node_modules/@iconify-json with sets of icons (fluent-emoji, noto, fluent-emoji-flat,
 * flat-color-icons). Prints the largest probabilities; some minutes.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { InferenceSession, Tensor } from "onnxruntime-node"
import sharp from "sharp"

const sets = join(process.argv[2], "node_modules/@iconify-json")
const ofEach = Number(process.argv[3] ?? 250)
const model = fileURLToPath(new URL("../weights/nsfwjs-mobilenet-v2.onnx", import.meta.url))
const session = await InferenceSession.create(model, { intraOpNumThreads: 1 })

const classesOf = async (svg) => {
  const { data, info } = await sharp(Buffer.from(svg))
    .resize(960, 960, { fit: "fill" })
    .flatten({ background: "white" })
    .raw()
    .toBuffer({ resolveWithObject: true })
  const pixels = new Tensor("uint8", data, [1, info.height, info.width, info.channels])
  const { probabilities } = await session.run({ pixels })
  return probabilities.data
}

const found = []
for (const set of readdirSync(sets)) {
  const { icons, ...all } = JSON.parse(readFileSync(join(sets, set, "icons.json"), "utf8"))
  const names = Object.keys(icons)
  const step = Math.max(1, Math.floor(names.length / ofEach))
  for (let at = 0; at < names.length; at += step) {
    const { body, width = all.width ?? 16, height = all.height ?? 16 } = icons[names[at]]
    const attributes = `width="512" height="512" viewBox="0 0 ${width} ${height}"`
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ${attributes}>${body}</svg>`
    found.push([`${set}/${names[at]}`, await classesOf(svg)])
  }
}
console.log(`${found.length} drawings`)
for (const [name, at] of [
  ["hentai", 1],
  ["porn", 3],
  ["sexy", 4],
]) {
  const largest = [...found].sort(([, a], [, b]) => b[at] - a[at]).slice(0, 3)
  const shown = largest.map(([icon, classes]) => `${classes[at].toFixed(3)} (${icon})`)
  console.log(`${name}: ${shown.join(", ")}`)
}
