import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../deployment/code.ts"
import { readCosts } from "./costs.ts"
import { scalePage } from "./page.ts"
import { scalePicture } from "./picture.ts"

/** `npm run docs`: docs/scale.md and docs/scale.svg. */
writeFileSync(join(root, "docs/scale.md"), scalePage(readCosts()))
writeFileSync(join(root, "docs/scale.svg"), scalePicture(readCosts()))
