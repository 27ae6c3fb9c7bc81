/** Writes weights.bin into the folder of the packages, and the model's description to stdout. */
import { writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join, resolve } from "node:path"

const folder = resolve(process.argv[2])
const require = createRequire(join(folder, "package.json"))
const model = join(folder, "node_modules/nsfwjs/dist/models/mobilenet_v2")
writeFileSync(
  join(folder, "weights.bin"),
  Buffer.from(require(join(model, "group1-shard1of1.min.js")), "base64"),
)
console.log(JSON.stringify(require(join(model, "model.min.js"))))
