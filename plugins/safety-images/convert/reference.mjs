/**
 * What nsfwjs itself says of pictures, by tfjs on the CPU: reference.mjs FOLDER-OF-PACKAGES PICTURES.
 * Some seconds a picture.
 */
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join, resolve } from "node:path"

const require = createRequire(join(resolve(process.argv[2]), "package.json"))
const tf = require("@tensorflow/tfjs")
const sharp = require("sharp")
const { load } = require("nsfwjs/core")
const { MobileNetV2Model } = require("nsfwjs/models/mobilenet_v2")

console.info = () => {}
await tf.setBackend("cpu")
const model = await load("MobileNetV2", { modelDefinitions: [MobileNetV2Model] })
const found = {}
for (const name of readdirSync(process.argv[3]).sort()) {
  const { data, info } = await sharp(readFileSync(join(process.argv[3], name)))
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true })
  const pixels = tf.tensor3d(new Uint8Array(data), [info.height, info.width, 3], "int32")
  const classes = await model.classify(pixels, 5)
  found[name] = Object.fromEntries(
    classes
      .map(({ className, probability }) => [className, probability])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}
console.log(JSON.stringify(found, null, 2))
