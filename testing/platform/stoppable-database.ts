import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { connect, createServer, type Server, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import pg from "pg"
import { clusterIn, startUnowned, stopServer } from "../../plugins/database-postgres/plugin.ts"
import { fakeLog } from "../fakes/log.ts"

export interface StoppableDatabase {
  readonly url: string
  stop(): Promise<void>
  start(): Promise<void>
  query<Row>(text: string): Promise<readonly Row[]>
  close(): Promise<void>
}

export const queryAt = async <Row>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> => {
  const client = new pg.Client({ connectionString: url })
  client.on("error", () => {})
  await client.connect()
  return (await client.query(text, [...values]).finally(() => client.end())).rows as readonly Row[]
}

/** The URL that reaches the embedded server of a data folder. */
export const embeddedUrl = (folder: string): string => {
  const read = (name: string) => readFileSync(join(folder, name), "utf8").trim()
  return `postgres://rakit:${read("postgres.password")}@127.0.0.1:${read("postgres.port")}/postgres`
}

/** The embedded server of a data folder. */
export const embeddedIn = (folder: string): Pick<StoppableDatabase, "query"> => ({
  query: (text) => queryAt(embeddedUrl(folder), text),
})

/** A PostgreSQL of its own, as one on another machine: it can be stopped while servers use it. */
export const startStoppableDatabase = async (): Promise<StoppableDatabase> => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-outage-"))
  chmodSync(folder, 0o711)
  const cluster = clusterIn(folder, { maxConnections: 100, durable: true })
  const start = async () => (await Effect.runPromise(startUnowned(cluster, fakeLog())))()
  const { user, password, host, port, database } = await start()
  const url = `postgres://${user}:${password}@${host}:${port}/${database}`
  return {
    url,
    stop: () => Effect.runPromise(stopServer(cluster, fakeLog())),
    start: async () => {
      const again = await start()
      if (again.port !== port) throw new Error(`the port ${port} was taken meanwhile`)
    },
    query: (text) => queryAt(url, text),
    close: async () => {
      await Effect.runPromise(stopServer(cluster, fakeLog()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface Wire {
  /** The URL through the wire. */
  readonly url: string
  /** Passes nothing on in either direction, and closes nothing, as a network that is cut. */
  cut(): void
  mend(): void
  close(): void
}

/** A wire to the server of a URL. */
export const startWire = async (url: string): Promise<Wire> => {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let isCut = false
  const pump = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on("data", (bytes) => to.write(bytes))
    from.on("close", () => {
      sockets.delete(from)
      if (!isCut) to.destroy()
    })
    from.on("error", () => {})
    if (isCut) from.pause()
  }
  const server: Server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    pump(near, far)
    pump(far, near)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const through = new URL(url)
  through.port = String((server.address() as { port: number }).port)
  return {
    url: through.href,
    cut: () => {
      isCut = true
      for (const socket of sockets) socket.pause()
    },
    mend: () => {
      isCut = false
      for (const socket of sockets) socket.resume()
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
