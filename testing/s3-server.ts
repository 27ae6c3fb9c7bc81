import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"

/** The release that .ci/run builds: github.com/versity/versitygw/cmd/versitygw. */
const version = "v1.8.0"

/** Where .ci/run keeps the built program; RAKIT_TEST_S3_SERVER names another. */
const program = (): string | undefined => {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache")
  const found =
    process.env.RAKIT_TEST_S3_SERVER ?? join(cache, "rakit", `versitygw-${version}`, "versitygw")
  return existsSync(found) ? found : undefined
}

/** Why tests on an S3 server are left out; undefined where it is there. */
export const noS3Server = (): string | undefined =>
  program() === undefined
    ? `no S3 server: GOBIN=~/.cache/rakit/versitygw-${version} go install github.com/versity/versitygw/cmd/versitygw@${version}`
    : undefined

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, "close")
  return port
}

const answers = async (url: string, child: ChildProcess): Promise<void> => {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the S3 server ended with ${child.exitCode}`)
    const isUp = await fetch(url).then(
      () => true,
      () => false,
    )
    if (isUp) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export interface S3Server {
  readonly endpoint: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The folder whose folders are the buckets. */
  readonly folder: string
  makeBucket(name: string): void
  /** SIGKILL, as a crash. */
  kill(): Promise<void>
  /** Starts it again, on the same port and folder. */
  restart(): Promise<void>
  close(): Promise<void>
}

export interface S3ServerOptions {
  /** Where buckets are; by default a new folder, which `close` removes. */
  readonly folder?: string
  readonly tls?: { readonly cert: string; readonly key: string }
}

/** A real S3 server (versitygw) on 127.0.0.1, whose objects are files. */
export const startS3Server = async (options: S3ServerOptions = {}): Promise<S3Server> => {
  // objects in memory, where that is possible: syncing costs nothing there
  const above = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "rakit-s3-"))
  const folder = options.folder ?? join(above, "buckets")
  mkdirSync(folder, { recursive: true })
  const port = await freePort()
  const accessKeyId = "rakit-test"
  const secretAccessKey = "rakit-test-secret"
  const { tls } = options
  const endpoint = `${tls ? "https" : "http"}://127.0.0.1:${port}`
  const start = () =>
    spawn(
      program()!,
      [
        ...["--port", `127.0.0.1:${port}`, "--quiet"],
        ...(tls ? ["--cert", tls.cert, "--key", tls.key] : []),
        ...["posix", folder],
      ],
      {
        env: { ...process.env, ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey },
        stdio: "ignore",
      },
    )
  let child = start()
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill("SIGKILL")
    await once(child, "exit")
  }
  const up = () => (tls ? Promise.resolve() : answers(endpoint, child))
  await up()
  return {
    endpoint,
    accessKeyId,
    secretAccessKey,
    folder,
    makeBucket: (name) => mkdirSync(join(folder, name), { recursive: true }),
    kill,
    restart: async () => {
      await kill()
      child = start()
      await up()
    },
    close: async () => {
      await kill()
      rmSync(above, { recursive: true, force: true })
    },
  }
}
