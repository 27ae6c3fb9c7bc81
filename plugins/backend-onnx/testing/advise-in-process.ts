// Takes memory for keys and values, and writes as JSON in how many kB of the process large pages are
// asked for: before, with an array of 2 MB, with one of 6 MB more; and whether that has zeros.
// usage: node --import tsx advise-in-process.ts
import { readFileSync } from "node:fs"
import { KvMemory } from "../sessions/kv-memory.ts"

const advisedKb = (): number =>
  readFileSync("/proc/self/smaps", "utf8")
    .split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)
    .filter((mapping) => /^VmFlags:.* hg\b/m.test(mapping))
    .reduce((sum, mapping) => sum + Number(/^Size: +(\d+)/m.exec(mapping)![1]), 0)

const memory = new KvMemory(true)
const before = advisedKb()
const small = memory.take(2 ** 20)
const withSmall = advisedKb()
const large = memory.take(3 * 2 ** 20)
const withLarge = advisedKb()
console.log(JSON.stringify([before, withSmall, withLarge, large.every((value) => value === 0)]))
memory.giveBack([small, large])
