// Makes requests from the document of a running server, good ones and odd ones, and checks each
// reply against it: `npm run fuzz -- [--operations 10000] [--seed N] [--at-once 4]`
import { parseArgs } from "node:util"
import { setup } from "../../global-setup.ts"
import { printReport } from "./report.ts"
import { runFuzz } from "./run.ts"
import { openWorld } from "./world.ts"

const { values } = parseArgs({
  options: {
    operations: { type: "string", default: "10000" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    "at-once": { type: "string", default: "4" },
  },
})
const options = {
  operations: Number(values.operations),
  seed: Number(values.seed),
  atOnce: Number(values["at-once"]),
}

console.log(`seed ${options.seed}, ${options.operations} operations`)
const stopDatabase = await setup()
const world = await openWorld()
try {
  const report = await runFuzz(world, options)
  printReport(report, world)
  if (report.findings.length > 0) process.exitCode = 1
} finally {
  await world.close()
  await stopDatabase?.()
}
