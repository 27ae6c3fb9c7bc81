import { createHash, randomBytes } from "node:crypto"
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import type { Content } from "../weights/content-digest.ts"
import { KnownContents } from "../weights/known-contents.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import { GraphBuilder, type Target } from "./graph-builder.ts"
import { kernelsVersion } from "./kernels.ts"
import { WeightStore } from "./weight-store.ts"

export const graphFile = "model.onnx"
const manifestFile = "contents.json"

export const digestOf = (parts: readonly unknown[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)

/** The digests that a cache of graphs remembers. */
export const knownIn = (root: string): KnownContents => new KnownContents(join(root, "known"))

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === "EPERM"
  }
}

const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })

/**
 * Whether a build folder was left by a dead process. With our own pid it belongs to another thread
 * that builds it now; or, where every boot has the same pid, as in containers, to a process of an
 * earlier boot.
 */
const isLeftBy = (pid: number, folder: string): boolean => {
  if (pid !== process.pid) return !isAlive(pid)
  const stat = statSync(folder, { throwIfNoEntry: false })
  return stat !== undefined && stat.mtimeMs < performance.timeOrigin
}

/** Removes what processes left that died while they built or removed this folder. */
const removeLeftovers = (root: string, digest: string): void => {
  for (const name of readdirSync(root)) {
    const pid = name.startsWith(`${digest}.`)
      ? Number(/\.(?:building|damaged)-(\d+)-/.exec(name)?.[1])
      : Number.NaN
    if (pid && isLeftBy(pid, join(root, name))) remove(join(root, name))
  }
}

/** Writes the list of files with their digests, as the last file of a complete folder. */
const writeManifest = (folder: string, known: KnownContents): void => {
  const files = readdirSync(folder).map((name) => [name, known.of(join(folder, name))] as const)
  writeFileSync(join(folder, manifestFile), JSON.stringify(Object.fromEntries(files)))
}

/** Flushes files before the rename, which could otherwise reach the disk before their bytes do. */
const flush = (folder: string): void => {
  for (const name of [...readdirSync(folder), "."]) {
    const handle = openSync(join(folder, name), "r")
    try {
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
  }
}

/** Whether all files of a folder match their digests; large ones are read when they are new. */
const isWhole = (folder: string, known: KnownContents): boolean => {
  try {
    const files = Object.entries(
      JSON.parse(readFileSync(join(folder, manifestFile), "utf8")) as Record<string, Content>,
    )
    const sound = ([name, wanted]: (typeof files)[number]) => {
      const path = join(folder, name)
      return statSync(path).size === wanted.bytes && known.of(path).sha256 === wanted.sha256
    }
    return files.length > 0 && files.every(sound)
  } catch {
    return false
  }
}

const publish = (building: string, ready: string): void => {
  try {
    renameSync(building, ready)
  } catch (cause) {
    remove(building)
    // another process was faster, and its folder is equivalent
    if (!existsSync(join(ready, manifestFile))) throw cause
  }
}

/** Removes a folder, renaming it first, so that no process finds it half removed. */
const discard = (folder: string): void => {
  const aside = `${folder}.damaged-${process.pid}-${randomBytes(4).toString("hex")}`
  try {
    renameSync(folder, aside)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause
  }
  remove(aside)
}

const writeFaults = new Set<unknown>([
  "ENOSPC",
  "EEXIST",
  "EDQUOT",
  "EROFS",
  "EACCES",
  "EPERM",
  "ENOTDIR",
  "EFBIG",
])

/** Names the cache's folder in errors of a full disk, as the model's files are intact then. */
const namingDisk = <A>(root: string, write: () => A): A => {
  try {
    return write()
  } catch (cause) {
    if (!writeFaults.has((cause as NodeJS.ErrnoException).code)) throw cause
    throw new ModelFileError(
      root,
      `a built graph can't be written there (${(cause as Error).message})`,
      "It takes about as much space as the model's weights: make room, or the folder writable",
    )
  }
}

const refill = (root: string, digest: string, fill: (folder: string) => void): void => {
  const ready = join(root, digest)
  // it holds the weights, which need not be public
  mkdirSync(root, { recursive: true, mode: 0o700 })
  if (existsSync(ready)) discard(ready)
  removeLeftovers(root, digest)
  const folder = join(root, `${digest}.building-${process.pid}-${randomBytes(4).toString("hex")}`)
  mkdirSync(folder)
  try {
    fill(folder)
    flush(folder)
    writeManifest(folder, knownIn(root))
    flush(folder)
  } catch (cause) {
    remove(folder)
    throw cause
  }
  publish(folder, ready)
}

/**
 * Returns the folder `<root>/<digest>`; `fill` writes it when it is missing or damaged.
 * It appears atomically, by a rename, so that several processes may fill it at once. Blocks the
 * thread: for workers only.
 */
export const cachedFolder = (
  root: string,
  digest: string,
  fill: (folder: string) => void,
): string => {
  const ready = join(root, digest)
  if (!isWhole(ready, knownIn(root))) namingDisk(root, () => refill(root, digest, fill))
  return ready
}

/** Writes a graph and its weights into a folder. */
export const writeGraph = (
  folder: string,
  files: { readonly graph: string; readonly weights: string; readonly target?: Target },
  build: (graph: GraphBuilder) => void,
): void => {
  const store = new WeightStore(folder, files.weights)
  const graph = new GraphBuilder(store, files.target, kernelsVersion() !== undefined)
  try {
    build(graph)
  } finally {
    store.close()
  }
  writeFileSync(join(folder, files.graph), graph.toBytes())
}

/** Where the graphs of an engine are, and what they are built for. */
export interface GraphPlace {
  readonly graphs: string
  /** Absent: the CPU. */
  readonly device?: unknown
}

/** A graph's folder, by its digest, where it runs, and the native kernels that it uses. */
const folderOf = (digest: string, target: Target): string => {
  if (target === "gpu") return `${digest}-gpu`
  const kernels = kernelsVersion()
  return kernels === undefined ? digest : digestOf([digest, "kernels", kernels])
}

/** Returns a cached folder with `model.onnx`, its weights and other files that `build` writes. */
export const cachedGraph = (
  { graphs, device }: GraphPlace,
  digest: string,
  build: (graph: GraphBuilder, folder: string) => void,
): string => {
  const target = device ? "gpu" : "cpu"
  return cachedFolder(graphs, folderOf(digest, target), (folder) =>
    writeGraph(folder, { graph: graphFile, weights: "weights.bin", target }, (graph) =>
      build(graph, folder),
    ),
  )
}
