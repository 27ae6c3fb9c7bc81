// Requests a second and p95 of the whole server, 64 connections. `npm run build && node --import
// tsx bench/http.ts [--rounds 5] [--ms 1200]`
import { codeInWords } from "./deployment/code.ts"
import { type Deployment, makeDeployment } from "./deployment/deployment.ts"
import { type LoadClient, type LoadResult, startLoadClient } from "./deployment/load-client.ts"
import { startServer } from "./deployment/server-process.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { readOptions } from "./measure/options.ts"
import { alternate, medianOf, type Rounds, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"
import { record, startBarePeer } from "./path/http-layers.ts"
import { embeddingBody } from "./path/requests.ts"

const options = readOptions({ rounds: 5, ms: 1200 })
const startedMs = performance.now()
const connections = 64

const requests = [
  { title: "GET /v1/models", method: "GET", path: "/v1/models", body: undefined },
  {
    title: "POST /v1/embeddings (one text, base64)",
    method: "POST",
    path: "/v1/embeddings",
    body: embeddingBody,
  },
] as const
type Request = (typeof requests)[number]

const servers = {
  ledger: "rakit, ledger on PostgreSQL",
  free: "rakit, billing-free",
  bare: "limit: bare node:http, same bytes",
}
type Server = keyof typeof servers
const nameOf = (request: Request, server: Server) => `${request.title}: ${server}`

const sideOf = (
  client: LoadClient,
  request: Request,
  server: Server,
  url: string,
  apiKey: string,
) => {
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" }
  const job = {
    url: url + request.path,
    method: request.method,
    headers,
    connections,
    ...(request.body && { body: JSON.stringify(request.body) }),
  }
  return { name: nameOf(request, server), run: (ms: number) => client.run({ ...job, ms }) }
}

const print = (rounds: Rounds<LoadResult>, request: Request) => {
  const middle = (server: Server, figureOf: (result: LoadResult) => number) =>
    medianOf(rounds, nameOf(request, server), figureOf)
  const rows = (Object.keys(servers) as Server[]).map((server) => [
    servers[server],
    figure(middle(server, ({ perSecond }) => perSecond)),
    times(
      ratioOf(
        rounds,
        nameOf(request, "bare"),
        nameOf(request, server),
        ({ perSecond }) => perSecond,
      ),
    ),
    figure(middle(server, ({ medianMs }) => medianMs)),
    figure(middle(server, ({ p95Ms }) => p95Ms)),
    times(ratioOf(rounds, nameOf(request, server), nameOf(request, "bare"), ({ p95Ms }) => p95Ms)),
    String(
      (rounds.get(nameOf(request, server)) ?? []).reduce((sum, { failures }) => sum + failures, 0),
    ),
  ])
  printTable(
    request.title,
    ["", "requests/s", "limit is faster by", "median ms", "p95 ms", "p95 to the limit", "failures"],
    rows,
  )
}

const measure = async (deployments: Readonly<Record<"ledger" | "free", Deployment>>) => {
  const stops: (() => unknown)[] = []
  const kept = <A extends { stop(): unknown }>(running: A): A => {
    stops.unshift(() => running.stop())
    return running
  }
  try {
    const client = kept(startLoadClient())
    const ledger = kept(await startServer(deployments.ledger))
    const free = kept(await startServer(deployments.free))
    const { apiKey, folder } = deployments.ledger
    const recorded = await Promise.all(
      requests.map(
        async ({ method, path, body }) =>
          [`${method} ${path}`, await record(ledger.url, apiKey, path, body)] as const,
      ),
    )
    const bare = kept(await startBarePeer(folder, Object.fromEntries(recorded)))
    const urls: Readonly<Record<Server, string>> = {
      ledger: ledger.url,
      free: free.url,
      bare: bare.url,
    }
    const sides = requests.flatMap((request) =>
      (Object.keys(urls) as Server[]).map((server) =>
        sideOf(client, request, server, urls[server], apiKey),
      ),
    )
    for (const side of sides) await side.run(options.ms) // warms up; not counted
    return await alternate(sides, options.rounds, (side) => side.run(options.ms))
  } finally {
    for (const stop of stops) await stop()
  }
}

printMachine(
  `The whole server under ${connections} connections; the client runs beside it, on the same cores`,
  codeInWords,
)
const deployments = {
  ledger: makeDeployment({ atOnce: true }),
  free: makeDeployment({ atOnce: true, billing: "billing-free" }),
}
try {
  const rounds = await measure(deployments)
  console.log(
    `rounds   ${options.rounds}, alternating, ${options.ms} ms for each side; medians of the rounds, ratios within a round`,
  )
  for (const request of requests) print(rounds, request)
  printLoadAfter(startedMs)
} finally {
  for (const { remove } of Object.values(deployments)) remove()
}
