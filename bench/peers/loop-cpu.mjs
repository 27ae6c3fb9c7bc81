// Measures how much CPU time the main thread of a process takes between two turns of its event
// loop, which other processes on the machine don't change: `LOOP_CPU_FILE=f node --import
// ./loop-cpu.mjs ...`; SIGUSR2 writes the file and begins anew. Linux only.
import { openSync, readSync, renameSync, writeFileSync } from "node:fs"
import { isMainThread } from "node:worker_threads"

const file = process.env.LOOP_CPU_FILE
if (isMainThread && file) {
  const stat = openSync(`/proc/self/task/${process.pid}/schedstat`, "r")
  const bytes = Buffer.alloc(64)
  const cpuMs = () => {
    const length = readSync(stat, bytes, 0, bytes.length, 0)
    return Number(bytes.toString("latin1", 0, length).split(" ", 1)[0]) / 1e6
  }
  let last = cpuMs()
  let taken = []
  setInterval(() => {
    const now = cpuMs()
    taken.push(now - last)
    last = now
  }, 1).unref()
  process.on("SIGUSR2", () => {
    taken.sort((a, b) => a - b)
    const at = (share) => taken[Math.min(taken.length - 1, Math.floor(taken.length * share))] ?? 0
    writeFileSync(`${file}.part`, JSON.stringify({ p99Ms: at(0.99), maxMs: at(1) }))
    renameSync(`${file}.part`, file)
    taken = []
    last = cpuMs()
  })
}
