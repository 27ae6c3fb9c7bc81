import { probe } from "./adapter.ts"
import { listNodes } from "./node-list.ts"
import { serveEngines } from "./serve-engines.ts"

/** A child's program: what it does is its first argument. */
const [task, of] = process.argv.slice(2)

if (task === "probe") {
  process.send!(await probe(), () => process.disconnect())
} else if (task === "nodes" && of !== undefined) {
  await listNodes(of)
} else {
  serveEngines({ hasFp16: of === "fp16" })
}
