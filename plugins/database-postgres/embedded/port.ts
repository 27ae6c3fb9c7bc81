import { readFileSync } from "node:fs"
import { chmod, writeFile } from "node:fs/promises"
import { createServer } from "node:net"

/** Returns undefined when the port is taken; 0 picks a free one. */
const tryPort = (port: number): Promise<number | undefined> =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.once("error", () => resolve(undefined))
    probe.listen({ host: "127.0.0.1", port, exclusive: true }, () => {
      const address = probe.address()
      probe.close(() =>
        resolve(typeof address === "object" && address !== null ? address.port : undefined),
      )
    })
  })

const lastPort = (file: string): number => {
  try {
    const port = Number(readFileSync(file, "utf8"))
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : 0
  } catch {
    return 0
  }
}

/**
 * Returns the port that `file` remembers if it is free, otherwise another one, which it writes
 * there.
 */
export const choosePort = async (file: string): Promise<number> => {
  const port = (await tryPort(lastPort(file))) ?? (await tryPort(0))
  if (port === undefined) throw new Error("there is no free port on 127.0.0.1")
  await writeFile(file, String(port), { mode: 0o600 })
  // one that an earlier version wrote keeps its mode
  await chmod(file, 0o600)
  return port
}
