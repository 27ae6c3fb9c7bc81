// The client in a process of its own: takes a job over IPC, loads the server for so long, and answers what it saw.
// job: { url, method, headers, body, connections, ms } -> { perSecond, medianMs, p95Ms, failures }
import autocannon from "autocannon"

const percentile = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

const run = ({ ms, ...job }) =>
  new Promise((resolve, reject) => {
    const latencies = []
    let failures = 0
    const startedMs = performance.now()
    let lastMs = startedMs
    const instance = autocannon(
      { ...job, duration: ms / 1000, sampleInt: 100, excludeErrorStats: true },
      (error, result) => {
        if (error) return reject(error)
        latencies.sort((a, b) => a - b)
        failures += result.errors + result.timeouts
        resolve({
          perSecond: latencies.length / ((lastMs - startedMs) / 1000),
          medianMs: percentile(latencies, 0.5),
          p95Ms: percentile(latencies, 0.95),
          failures,
        })
      },
    )
    instance.on("response", (_client, status, _bytes, latencyMs) => {
      lastMs = performance.now()
      latencies.push(latencyMs)
      if (status !== 200) failures++
    })
  })

process.on("message", (job) => {
  run(job).then(
    (result) => process.send({ result }),
    (error) => process.send({ error: String(error) }),
  )
})
process.once("disconnect", () => process.exit(0))
