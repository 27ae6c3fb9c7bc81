// The limit: node:http and nothing else. Answers requests with recorded bytes, or "hello" where nothing was recorded.
// `node bench/peers/bare-server.js [routes.json]`; routes: { "POST /v1/embeddings": { status, headers, chunks: [text] } }
import { readFileSync } from "node:fs"
import { createServer } from "node:http"

const [file] = process.argv.slice(2)
const routes = file ? JSON.parse(readFileSync(file, "utf8")) : {}
const hello = { status: 200, headers: { "content-type": "text/plain" }, chunks: ["hello"] }

/** One write for each chunk, as a stream of events has it. */
const answer = (res, { status, headers, chunks }) => {
  res.writeHead(status, headers)
  for (const chunk of chunks.slice(0, -1)) res.write(chunk)
  res.end(chunks.at(-1))
}

const server = createServer((req, res) => {
  const reply = routes[`${req.method} ${req.url}`] ?? hello
  if (req.method === "GET") return answer(res, reply)
  // a limit that did not read the body would be none
  req.on("data", () => {}).on("end", () => answer(res, reply))
})
server.keepAliveTimeout = 65_000
server.listen(0, "127.0.0.1", () =>
  console.log(`listens on http://127.0.0.1:${server.address().port}`),
)
process.once("SIGTERM", () => process.exit(0))
