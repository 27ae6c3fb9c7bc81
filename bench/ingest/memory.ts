import { readdirSync, readFileSync } from "node:fs"

/** Resident bytes and parent of a process (Linux); undefined when it has ended. */
const statusOf = (pid: string): { readonly parent: number; readonly bytes: number } | undefined => {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8")
    const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1])
    return { parent: field("PPid"), bytes: (field("VmRSS") || 0) * 1024 }
  } catch {
    return undefined
  }
}

/** The resident bytes of each child of this process. */
export const childrenBytes = (): readonly number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(statusOf)
    .filter((status) => status?.parent === process.pid)
    .map((status) => status!.bytes)
