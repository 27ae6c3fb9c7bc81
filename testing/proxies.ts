import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"

const programs = { pgbouncer: "/usr/sbin/pgbouncer", nginx: "/usr/sbin/nginx" }

/** Why tests with a program of Debian are left out; undefined where it is installed. */
export const missing = (name: keyof typeof programs): string | undefined =>
  existsSync(programs[name]) ? undefined : `no ${name}: apt-get install ${name}`

/** A TCP port of 127.0.0.1 that nobody has at the moment. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, "close")
  return port
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    const end = (is: boolean) => {
      socket.destroy()
      resolve(is)
    }
    socket.once("connect", () => end(true)).once("error", () => end(false))
  })

/** Ends when it listens; rejects, with its log, when the process ends before. */
const untilItListens = async (port: number, child: ChildProcess, log: () => string) => {
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}\n${log()}`)
    await setTimeout(20)
  }
}

/** A program that stands between: listens on 127.0.0.1. */
export interface RunningProxy {
  readonly port: number
  log(): string
  close(): Promise<void>
}

const startProxy = async (
  name: keyof typeof programs,
  port: number,
  files: Readonly<Record<string, string>>,
  args: (folder: string) => readonly string[],
): Promise<RunningProxy> => {
  const folder = mkdtempSync(join(tmpdir(), `rakit-${name}-`))
  // pgbouncer does not run as root
  chmodSync(folder, 0o755)
  for (const [file, text] of Object.entries(files))
    writeFileSync(join(folder, file), text.replaceAll("FOLDER", folder))
  const logFile = join(folder, "log")
  writeFileSync(logFile, "")
  chmodSync(logFile, 0o666)
  const child = spawn(programs[name], args(folder), { stdio: "ignore" })
  const log = () => readFileSync(logFile, "utf8")
  const close = async () => {
    if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "exit")
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await untilItListens(port, child, log)
    return { port, log, close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * PgBouncer in transaction mode before the server of `url`, with `connections` of the server's for
 * each database. `urlOf` gives the URL of a database through it.
 */
export const startPgBouncer = async (
  url: string,
  connections = 5,
): Promise<RunningProxy & { urlOf(direct: string): string }> => {
  const { hostname, port: serverPort, username, password } = new URL(url)
  const port = await freePort()
  const config = `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
logfile = FOLDER/log
auth_type = scram-sha-256
auth_file = FOLDER/users
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 500
`
  const users = `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`
  const proxy = await startProxy(
    "pgbouncer",
    port,
    { "pgbouncer.ini": config, users },
    (folder) => [
      ...(process.getuid?.() === 0 ? ["-u", "nobody"] : []),
      join(folder, "pgbouncer.ini"),
    ],
  )
  return { ...proxy, urlOf: (direct) => Object.assign(new URL(direct), { port }).href }
}

/** Debian's nginx before servers, by the sample of deploy/proxy, without its certificates. */
export const startNginx = async (servers: readonly string[]): Promise<RunningProxy> => {
  const port = await freePort()
  const sample = readFileSync(new URL("../deploy/proxy/nginx.conf", import.meta.url), "utf8")
  const [, before, http] = /^(.*?)server \{\n {4}listen 80;.*?\n\}\n(.*)$/s.exec(sample) ?? []
  if (before === undefined || http === undefined)
    throw new Error("deploy/proxy/nginx.conf has no server for port 80 that this could leave out")
  const lines = servers.map((url) => `server ${new URL(url).host} max_fails=1 fail_timeout=1s;`)
  const site = `${before}${http}`
    .replace(/server api:8080 .*/, lines.join("\n"))
    .replace("listen 443 ssl;", `listen 127.0.0.1:${port};`)
    .replace(/^ *ssl_.*\n/gm, "")
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
  const config = `daemon off;
worker_processes 1;
pid FOLDER/pid;
error_log FOLDER/log info;
events { worker_connections 1024; }
http {
${temporary.map((kind) => `${kind}_temp_path FOLDER/${kind};`).join("\n")}
access_log off;
${site}
}
`
  return startProxy("nginx", port, { "nginx.conf": config }, (folder) => [
    ...["-e", join(folder, "log"), "-c", join(folder, "nginx.conf")],
  ])
}
