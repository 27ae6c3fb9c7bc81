// What each layer adds to a call of the fake model. `npm run build && node --import tsx
// bench/path.ts [--rounds 7] [--ms 250]`
import { codeInWords } from "./deployment/code.ts"
import { makeDeployment } from "./deployment/deployment.ts"
import { type DeploymentInProcess, openDeployment } from "./deployment/in-process.ts"
import { type ServerProcess, startServer } from "./deployment/server-process.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { readOptions } from "./measure/options.ts"
import { alternate, medianOf, type Rounds, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"
import { type CallTimes, type Side, timeCalls, warmUp } from "./measure/timed-calls.ts"
import { httpSide, record, startBarePeer } from "./path/http-layers.ts"
import { pathSide, portSide } from "./path/layers.ts"
import { chatBody, chatStreamBody, embeddingBody, outputTokens } from "./path/requests.ts"

const options = readOptions({ rounds: 7, ms: 250 })
const startedMs = performance.now()
/** Frames the tokens as one message: role, tokens, end. */
const eventsOfStream = outputTokens + 2

const tables = [
  {
    title: "chat, 20 messages, 50 output tokens",
    route: "/v1/chat/completions",
    id: "chat.completions",
    task: "chat",
    model: "svc-lyt",
    body: chatBody,
    events: 1,
  },
  {
    title: "the same as a stream",
    route: "/v1/chat/completions?stream",
    id: "chat.completions",
    task: "chat",
    model: "svc-lyt",
    body: chatStreamBody,
    events: eventsOfStream,
  },
  {
    title: "one embedding (base64)",
    route: "/v1/embeddings",
    id: "embeddings",
    task: "embed",
    model: "svc-embed",
    body: embeddingBody,
    events: 1,
  },
] as const
type Table = (typeof tables)[number]

const layers = {
  port: "the Model port alone",
  path: "+ call path, billing that does nothing",
  ledger: "+ ledger on PostgreSQL",
  http: "+ HTTP, authentication, log, metrics",
  bare: "  limit: bare node:http, same bytes",
}
type Layer = keyof typeof layers
const nameOf = (table: Table, layer: Layer) => `${table.title}: ${layer}`

const sidesOf = async (
  table: Table,
  deployment: DeploymentInProcess,
  server: ServerProcess,
  bare: { url: string; pid: number },
  apiKey: string,
) => {
  const { id, task, model, body, route } = table
  const name = (layer: Layer) => nameOf(table, layer)
  const web = [
    httpSide(name("http"), server, apiKey, { path: route, body }),
    httpSide(name("bare"), bare, apiKey, { path: route, body }),
  ]
  const sides: readonly Side[] = [
    await portSide(deployment, name("port"), task, model),
    pathSide(deployment, name("path"), deployment.pathWithoutBilling, id, body),
    pathSide(deployment, name("ledger"), deployment.path, id, body),
    ...web,
  ]
  return { sides, close: () => Promise.all(web.map((side) => side.close())) }
}

const print = (rounds: Rounds<CallTimes>, table: Table) => {
  const wall = (layer: Layer) => medianOf(rounds, nameOf(table, layer), ({ wallUs }) => wallUs)
  const ratio = (layer: Layer, against: Layer) =>
    times(ratioOf(rounds, nameOf(table, layer), nameOf(table, against), ({ wallUs }) => wallUs))
  const below: Readonly<Partial<Record<Layer, Layer>>> = {
    path: "port",
    ledger: "path",
    http: "ledger",
  }
  const rows = (Object.keys(layers) as Layer[]).map((layer) => [
    layers[layer],
    figure(wall(layer)),
    below[layer] ? figure(wall(layer) - wall(below[layer])) : "",
    ratio(layer, "port"),
    layer === "http" || layer === "bare" ? ratio(layer, "bare") : "",
    figure(medianOf(rounds, nameOf(table, layer), ({ cpuUs }) => cpuUs)),
    ...(table.events > 1 ? [figure(wall(layer) / table.events)] : []),
  ])
  printTable(
    table.title,
    [
      "",
      "us/call",
      "added us",
      "to the port",
      "to the limit",
      "CPU us",
      ...(table.events > 1 ? ["us/event"] : []),
    ],
    rows,
  )
}

const measure = async (
  deployment: DeploymentInProcess,
  server: ServerProcess,
  folder: string,
  apiKey: string,
) => {
  const recorded = Object.fromEntries(
    await Promise.all(
      tables.map(
        async ({ route, body }) =>
          [`POST ${route}`, await record(server.url, apiKey, route, body)] as const,
      ),
    ),
  )
  const bare = await startBarePeer(folder, recorded)
  const made = await Promise.all(
    tables.map((table) => sidesOf(table, deployment, server, bare, apiKey)),
  )
  const sides = made.flatMap((one) => one.sides)
  try {
    await alternate(sides, 2, (side) => warmUp(side, options.ms))
    return await alternate(sides, options.rounds, (side) => timeCalls(side, options.ms))
  } finally {
    await Promise.all(made.map((one) => one.close()))
    await bare.stop()
  }
}

printMachine("What each layer adds to one call, one call at a time", codeInWords)
const own = makeDeployment()
const served = makeDeployment()
const deployment = await openDeployment(own)
const server = await startServer(served)
try {
  const rounds = await measure(deployment, server, served.folder, served.apiKey)
  console.log(
    `rounds   ${options.rounds}, alternating, ${options.ms} ms for each side; medians of the rounds, ratios within a round`,
  )
  for (const table of tables) print(rounds, table)
  printLoadAfter(startedMs)
} finally {
  await server.stop()
  await deployment.close()
  own.remove()
  served.remove()
}
