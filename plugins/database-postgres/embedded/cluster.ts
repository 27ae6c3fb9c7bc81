import { statfsSync } from "node:fs"
import { join } from "node:path"

/** The embedded server of a deployment, and the paths of its files. */
export interface Cluster {
  readonly dataDir: string
  readonly home: string
  /** Password of the superuser; mode 0600. Written before `home` exists. */
  readonly passwordFile: string
  readonly portFile: string
  readonly logFile: string
  readonly lockFile: string
  readonly maxConnections: number
  /** False only in tests: a crash of the machine may then lose everything. */
  readonly durable: boolean
}

export const superuser = "rakit"
export const databaseName = "postgres"

export const clusterIn = (
  dataDir: string,
  options: { readonly maxConnections: number; readonly durable?: boolean },
): Cluster => ({
  dataDir,
  home: join(dataDir, "postgres"),
  passwordFile: join(dataDir, "postgres.password"),
  portFile: join(dataDir, "postgres.port"),
  logFile: join(dataDir, "postgres.log"),
  lockFile: join(dataDir, "server.lock"),
  maxConnections: options.maxConnections,
  durable: options.durable ?? true,
})

/** A segment of the write-ahead log: without room for the next one, the server crashes. */
const leastFreeBytes = 16 * 2 ** 20

/** Says how little room the disk has; undefined where it is enough, or can't be known. */
export const noRoomIn = ({ home }: Cluster): string | undefined => {
  try {
    const { bavail, bsize } = statfsSync(home)
    const free = bavail * bsize
    return free < leastFreeBytes
      ? `the disk of ${home} is full: ${Math.floor(free / 2 ** 20)} MB are free`
      : undefined
  } catch {
    return undefined
  }
}
