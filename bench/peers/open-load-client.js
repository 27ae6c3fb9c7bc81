// An open-loop client in a process of its own: requests are due at a constant rate, whatever the replies do, and their times count from when they
// were due; so a server that stalls pays for every request that it kept waiting. Raw sockets: an HTTP library would take as much CPU as the server.
// job: { url, method, path, headers, body, connections, perSecond, ms } -> { achieved, medianMs, p95Ms, p99Ms, failures }
import { connect } from "node:net"

/** After the last request is due. What is not answered then has failed. */
const patienceMs = 2_000

const percentile = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

const bytesOf = ({ url, method, path, headers, body = "" }) => {
  const lines = Object.entries({
    host: new URL(url).host,
    ...headers,
    "content-length": Buffer.byteLength(body),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`)
}

/** One connection with at most one request on it. Replies have a Content-Length, as those of JSON do. */
const open = ({ hostname, port }, onReply, onBroken) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true }, () =>
      resolve(connection),
    )
    const connection = { socket, dueMs: undefined }
    let head = ""
    let missing = 0
    let status = 0
    socket.on("data", (chunk) => {
      if (missing === 0) {
        head += chunk.toString("latin1")
        const end = head.indexOf("\r\n\r\n")
        if (end < 0) return
        status = Number(head.slice(9, 12))
        missing =
          end +
          4 +
          Number(/\r\ncontent-length: (\d+)/i.exec(head.slice(0, end))?.[1] ?? 0) -
          head.length
        head = ""
      } else missing -= chunk.length
      if (missing === 0) onReply(connection, status)
    })
    socket.on("error", reject)
    socket.on("close", () => onBroken(connection))
  })

const run = async ({ connections, perSecond, ms, ...job }) => {
  const bytes = bytesOf(job)
  const total = Math.round((perSecond * ms) / 1000)
  const latencies = []
  let refused = 0
  let sent = 0
  let free = []
  let finished
  const ended = new Promise((resolve) => {
    finished = resolve
  })
  const onReply = (connection, status) => {
    if (status === 200) latencies.push(performance.now() - connection.dueMs)
    else refused++
    connection.dueMs = undefined
    free.push(connection)
    if (latencies.length + refused === total) finished()
    else send()
  }
  const onBroken = (connection) => {
    if (connection.dueMs !== undefined) refused++
    free = free.filter((one) => one !== connection)
  }
  const all = await Promise.all(
    Array.from({ length: connections }, () => open(new URL(job.url), onReply, onBroken)),
  )
  free = [...all]
  const startMs = performance.now() + 20
  const dueMs = (index) => startMs + (index * 1000) / perSecond
  const send = () => {
    const nowMs = performance.now()
    while (sent < total && free.length > 0 && dueMs(sent) <= nowMs) {
      const connection = free.shift()
      connection.dueMs = dueMs(sent++)
      connection.socket.write(bytes)
    }
  }
  const tick = () => {
    send()
    if (sent < total)
      timer = setTimeout(tick, Math.max(1, Math.floor(dueMs(sent) - performance.now())))
  }
  let timer = setTimeout(tick, 20)
  await Promise.race([
    ended,
    new Promise((resolve) => setTimeout(resolve, 20 + ms + patienceMs).unref()),
  ])
  const tookMs = performance.now() - startMs
  clearTimeout(timer)
  for (const { socket } of all) socket.removeAllListeners("close").destroy()
  latencies.sort((a, b) => a - b)
  return {
    // replies to the last requests come after the end of the interval: that is no lost throughput as long as none waits in line
    achieved: latencies.length / (Math.max(ms, tookMs) / 1000),
    medianMs: percentile(latencies, 0.5),
    p95Ms: percentile(latencies, 0.95),
    p99Ms: percentile(latencies, 0.99),
    failures: total - latencies.length,
  }
}

process.on("message", (job) => {
  run(job).then(
    (result) => process.send({ result }),
    (error) => process.send({ error: String(error) }),
  )
})
process.once("disconnect", () => process.exit(0))
