import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../deployment/code.ts"
import { figure, printTable } from "./table.ts"

/** As V8 writes it (`node --cpu-prof`). */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: {
      readonly functionName: string
      readonly url: string
      readonly lineNumber: number
    }
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** Arguments of node with which a process writes its profile to `folder` when it ends. */
export const profilingInto = (folder: string): readonly string[] => [
  "--cpu-prof",
  `--cpu-prof-dir=${folder}`,
  "--cpu-prof-interval=200",
]

/** V8 names the files `CPU.<date>.<time>.<pid>.<thread>.<number>.cpuprofile`; 0 is the main thread. */
const mainThread = /^CPU\.\d+\.\d+\.\d+\.0\.\d+\.cpuprofile$/

/** `dist/core/call.js`, `effect`, `node:internal/http`, `(garbage collector)` */
const placeOf = ({ url, functionName }: CpuProfile["nodes"][number]["callFrame"]): string => {
  if (url === "") return functionName.startsWith("(") ? functionName : "(native)"
  const path = decodeURIComponent(url.replace(/^file:\/\//, "")).replace(`${root}`, "")
  return /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path
}

const asleep: ReadonlySet<string> = new Set(["(idle)", "(program)"])

const top = (times: ReadonlyMap<string, number>, most: number) =>
  [...times].sort(([, a], [, b]) => b - a).slice(0, most)

/** Prints where the main thread spent its time itself, by file or package and by function. */
export const printProfile = (title: string, folder: string): void => {
  const name = readdirSync(folder).find((file) => mainThread.test(file))
  if (name === undefined) throw new Error(`there is no profile in ${folder}`)
  const { nodes, samples, timeDeltas } = JSON.parse(
    readFileSync(join(folder, name), "utf8"),
  ) as CpuProfile
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const places = new Map<string, number>()
  const functions = new Map<string, number>()
  let awakeUs = 0
  for (const [index, sample] of samples.entries()) {
    const frame = frames.get(sample)!
    const place = placeOf(frame)
    const us = timeDeltas[index]!
    if (asleep.has(place)) continue
    const called = `${frame.functionName || "(anonymous)"} ${place}:${frame.lineNumber + 1}`
    awakeUs += us
    places.set(place, (places.get(place) ?? 0) + us)
    functions.set(called, (functions.get(called) ?? 0) + us)
  }
  const rows = (times: ReadonlyMap<string, number>) =>
    top(times, 40).map(([what, us]) => [what, figure(us / 1000), figure((us / awakeUs) * 100)])
  printTable(`${title}: by file or package`, ["", "ms", "%"], rows(places))
  printTable(`${title}: by function`, ["", "ms", "%"], rows(functions))
  console.log(`  the profile: ${join(folder, name)}`)
}
