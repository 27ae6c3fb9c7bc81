import { accessSync, constants, existsSync, readFileSync, statfsSync } from "node:fs"
import { availableParallelism, cpus, totalmem } from "node:os"
import { dirname } from "node:path"
import { version } from "../../version.ts"
import { type Finding, ok, problem, sizeText, warning } from "./finding.ts"

const textOf = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

const leastNode = [20, 19] as const

export const versions = (running: string = process.versions.node): Finding => {
  const [major = 0, minor = 0] = running.split(".").map(Number)
  const isOld = major < leastNode[0] || (major === leastNode[0] && minor < leastNode[1])
  const detail = `rakit ${version}, Node ${running} on ${process.platform} ${process.arch}`
  return isOld
    ? problem("versions", detail, `install Node ${leastNode.join(".")} or newer.`)
    : ok("versions", detail)
}

/** The engine's kernels, fastest first, by the flag of the CPU that they need. */
const fastest = ["amx_tile", "avx512_bf16", "avx512_vnni", "avx512f", "avx_vnni", "avx2"]

/** `flags`: those of the CPU, as Linux names them; empty where it does not say. */
export const processor = (
  flags: readonly string[] = (/^flags\s*:(.*)$/m.exec(textOf("/proc/cpuinfo"))?.[1] ?? "").split(
    " ",
  ),
): Finding => {
  const cores = availableParallelism()
  const known = fastest.filter((flag) => flags.includes(flag))
  const model = cpus()[0]?.model.trim() ?? process.arch
  const detail = `${cores} cores, ${model}${known.length > 0 ? ` (${known.join(", ")})` : ""}`
  const isPlain = process.arch === "x64" && flags.length > 1 && known.length === 0
  return isPlain
    ? warning("processor", `${detail}: no AVX2`, "models will be slow; use a CPU with AVX2.")
    : ok("processor", detail)
}

/** What a container may use, or the machine has. */
export const memoryLimit = (): number => {
  const limit = Number(textOf("/sys/fs/cgroup/memory.max") || Number.NaN)
  return Number.isFinite(limit) ? Math.min(limit, totalmem()) : totalmem()
}

/** Beside the weights: keys and values, activations, the database, Node itself. */
const beside = 1.5 * 2 ** 30

/** `weights`: the bytes of all models' files that are here, a file that several share once. */
export const memory = (weights: number, bytes: number = memoryLimit()): Finding => {
  const detail = `${sizeText(bytes)}; the models that are here have ${sizeText(weights)} of weights`
  return weights + beside > bytes
    ? warning("memory", detail, "serve fewer or smaller models, or give more memory.")
    : ok("memory", detail)
}

/** The folder, or the nearest one above it that is there. */
const existing = (folder: string): string =>
  existsSync(folder) ? folder : existing(dirname(folder))

const little = 2 * 2 ** 30
const tooLittle = 200 * 2 ** 20

export const disk = (name: string, folder: string): Finding => {
  const nearest = existing(folder)
  try {
    accessSync(nearest, constants.W_OK)
  } catch {
    return problem(
      name,
      `nothing can be written to ${nearest}`,
      "change its owner, or name another.",
    )
  }
  const { bavail, bsize } = statfsSync(nearest)
  const free = bavail * bsize
  const detail = `${sizeText(free)} free for ${folder}`
  const fix = "free some space, or name another disk's folder in the config file."
  if (free < tooLittle) return problem(name, detail, fix)
  return free < little ? warning(name, detail, fix) : ok(name, detail)
}

/** Certificates and sessions are judged by the clock. */
const released = Date.UTC(2026, 0, 1)
const maxSkewMs = 5_000

/** `databaseMs`: what the database's clock said at `nowMs`, where that is another machine's. */
export const clock = (nowMs: number, databaseMs?: number): Finding => {
  const fix = "synchronize the clock (chrony, systemd-timesyncd)."
  const shown = new Date(nowMs).toISOString()
  if (nowMs < released) return problem("clock", `it says ${shown}, which is past`, fix)
  const skewMs = Math.abs(nowMs - (databaseMs ?? nowMs))
  return skewMs > maxSkewMs
    ? warning("clock", `${shown}, ${(skewMs / 1000).toFixed(0)} s off the database's`, fix)
    : ok("clock", shown)
}
