// A closed-loop client in a process of its own: each connection sends its next request when the reply is there, each request with one of the
// keys and bodies at random. Raw sockets, so that it takes little of the cores that it shares with the servers. Streams are read to their end.
// `apart`: each server has keys of its own, as behind a balancer that goes by the key.
// job: { urls, method, path, headers, keys, apart, bodies, connections, ms } -> { count, perSecond, medianMs, p99Ms, failures, cpuUs }
import { connect } from "node:net"

/** After the last request was sent. What is not answered then has failed. */
const patienceMs = 30_000

const percentile = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

const anyOf = (list) => list[Math.floor(Math.random() * list.length)]

const bytesOf = (host, { method, path, headers }, key, body) => {
  const lines = Object.entries({
    host,
    ...headers,
    authorization: `Bearer ${key}`,
    "content-length": Buffer.byteLength(body),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`)
}

/** The last chunk and its trailers. */
const chunkedEnd = /(^|\r\n)0\r\n([^\r\n]+\r\n)*\r\n$/

/** Reads replies, one at a time: takes the pieces of one, and returns its status at its end. */
const replyReader = () => {
  let head = ""
  let status = 0
  let missing
  let tail
  return (piece) => {
    if (status === 0) {
      head += piece.toString("latin1")
      const end = head.indexOf("\r\n\r\n")
      if (end < 0) return undefined
      const fields = head.slice(0, end)
      const body = head.slice(end + 4)
      status = Number(head.slice(9, 12))
      head = ""
      const length = /\r\ncontent-length: (\d+)/i.exec(fields)
      if (length) missing = Number(length[1]) - body.length
      else tail = body.slice(-4096)
    } else if (tail !== undefined) tail = (tail + piece.toString("latin1")).slice(-4096)
    else missing -= piece.length
    if (tail === undefined ? missing > 0 : !chunkedEnd.test(tail)) return undefined
    const ended = status
    status = 0
    tail = undefined
    return ended
  }
}

const open = (url, keys, onReply) =>
  new Promise((resolve, reject) => {
    const { hostname, port, host } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), noDelay: true }, () =>
      resolve(connection),
    )
    const connection = { socket, host, keys, sentMs: undefined, isOpen: true }
    const read = replyReader()
    socket.on("data", (piece) => {
      const status = read(piece)
      if (status !== undefined) onReply(connection, status)
    })
    socket.on("error", reject)
    socket.on("close", () => {
      connection.isOpen = false
      if (connection.sentMs !== undefined) onReply(connection, 0)
    })
  })

const run = async ({ urls, keys, apart, bodies, connections, ms, ...request }) => {
  const latencies = []
  let failures = 0
  let inFlight = 0
  let untilMs = Number.POSITIVE_INFINITY
  let lastMs = 0
  let finished
  const ended = new Promise((resolve) => {
    finished = resolve
  })
  const send = (connection) => {
    connection.sentMs = performance.now()
    inFlight++
    connection.socket.write(
      bytesOf(connection.host, request, anyOf(connection.keys), anyOf(bodies)),
    )
  }
  const onReply = (connection, status) => {
    const nowMs = performance.now()
    if (status === 200 || status === 201) {
      latencies.push(nowMs - connection.sentMs)
      lastMs = nowMs
    } else failures++
    connection.sentMs = undefined
    inFlight--
    if (nowMs < untilMs && connection.isOpen) send(connection)
    else if (inFlight === 0) finished()
  }
  const all = await Promise.all(
    Array.from({ length: connections }, (_, n) => {
      const at = n % urls.length
      const own = apart ? keys.filter((_, k) => k % urls.length === at) : keys
      return open(urls[at], own, onReply)
    }),
  )
  const cpu = process.cpuUsage()
  const startMs = performance.now()
  untilMs = startMs + ms
  for (const connection of all) send(connection)
  const patience = setTimeout(finished, ms + patienceMs)
  await ended
  clearTimeout(patience)
  const { user, system } = process.cpuUsage(cpu)
  for (const { socket } of all) socket.removeAllListeners("close").destroy()
  latencies.sort((a, b) => a - b)
  return {
    count: latencies.length,
    perSecond: latencies.length / ((lastMs - startMs) / 1000),
    medianMs: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    failures: failures + inFlight,
    cpuUs: user + system,
  }
}

process.on("message", (job) => {
  run(job).then(
    (result) => process.send({ result }),
    (error) => process.send({ error: String(error) }),
  )
})
process.once("disconnect", () => process.exit(0))
