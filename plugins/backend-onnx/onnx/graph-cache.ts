import { createHash, randomBytes } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { GraphBuilder } from "./graph-builder.ts"
import { WeightStore } from "./weight-store.ts"

export const graphFile = "model.onnx"

export const digestOf = (parts: readonly unknown[]): string => createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return pid !== process.pid
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === "EPERM"
  }
}

const removeLeftovers = (folder: string, digest: string): void => {
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(`${digest}.building-`) ? Number(name.split("-")[1]) : Number.NaN
    if (pid && !isAlive(pid)) rmSync(join(folder, name), { recursive: true, force: true })
  }
}

const publish = (building: string, ready: string): void => {
  try {
    renameSync(building, ready)
  } catch (cause) {
    rmSync(building, { recursive: true, force: true })
    // another process was faster: its graph is as good as ours
    if (!existsSync(join(ready, graphFile))) throw cause
  }
}

/**
 * The folder `<graphs>/<digest>` with `model.onnx`, its weights and what else `build` writes into it; built when it is not there yet.
 * It appears as a whole, by a rename, so that several processes can build at once. Blocks: for worker threads only.
 */
export const cachedGraph = (graphs: string, digest: string, build: (graph: GraphBuilder, folder: string) => void): string => {
  const ready = join(graphs, digest)
  if (existsSync(join(ready, graphFile))) return ready
  mkdirSync(graphs, { recursive: true })
  removeLeftovers(graphs, digest)
  const folder = join(graphs, `${digest}.building-${process.pid}-${randomBytes(4).toString("hex")}`)
  mkdirSync(folder)
  try {
    const store = new WeightStore(folder)
    const graph = new GraphBuilder(store)
    try {
      build(graph, folder)
    } finally {
      store.close()
    }
    writeFileSync(join(folder, graphFile), graph.toBytes())
  } catch (cause) {
    rmSync(folder, { recursive: true, force: true })
    throw cause
  }
  publish(folder, ready)
  return ready
}
