// Measures how long the event loop of a process is held up: `LOOP_GAP_FILE=f node --import
// ./loop-gap.mjs ...`; SIGUSR2 writes the file and begins anew.
import { renameSync, writeFileSync } from "node:fs"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { isMainThread } from "node:worker_threads"

const file = process.env.LOOP_GAP_FILE
if (isMainThread && file) {
  const resolutionMs = 1
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - resolutionMs)
  process.on("SIGUSR2", () => {
    writeFileSync(
      `${file}.part`,
      JSON.stringify({
        p50Ms: ms(delay.percentile(50)),
        p99Ms: ms(delay.percentile(99)),
        maxMs: ms(delay.max),
        samples: delay.count,
      }),
    )
    renameSync(`${file}.part`, file)
    delay.reset()
  })
}
