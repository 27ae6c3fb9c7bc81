import { parseArgs } from "node:util"
import { freshSeed } from "../../sampling/random.ts"
import { difference, randomCase, shrunk } from "./split-cases.ts"

/**
 * Compares the answer parser with a reference parser, and with itself, over random texts cut at
 * random places.
 * `npm run fuzz:splits -- [--seconds 20] [--runs 1000000] [--seed 1]`; a seed stands for the same
 * cases again. Fails with the smallest example found.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "20" },
    runs: { type: "string", default: "Infinity" },
    seed: { type: "string" },
  },
})
const seed = values.seed === undefined ? freshSeed() : Number(values.seed)
const [seconds, runs] = [Number(values.seconds), Number(values.runs)]
if ([seed, seconds, runs].some(Number.isNaN)) {
  console.error("--seconds, --runs and --seed take numbers")
  process.exit(2)
}

const startedMs = performance.now()
let run = 0
for (; run < runs && performance.now() - startedMs < seconds * 1_000; run++) {
  const found = randomCase(seed + run)
  if (!difference(found)) continue
  const { formName, text, cuts, isCut } = shrunk(found)
  console.error(`The parsers differ (--seed ${seed + run} --runs 1).`)
  console.error(JSON.stringify({ form: formName, text, cuts, isCut }, null, 2))
  console.error(JSON.stringify(difference({ ...found, text, cuts }), null, 2))
  process.exit(1)
}
console.log(`${run} texts, each as one, in pieces and by the other parser: equal. Seed ${seed}.`)
