import { spawnSync } from "node:child_process"
import { InferenceSession } from "onnxruntime-node"
import type { PlacedNodes } from "./protocol.ts"

export const provider = "webgpu"

/** Options by which all graphs are opened: where a node runs depends on them. */
export const sessionOptions: InferenceSession.SessionOptions = {
  executionProviders: [provider],
  interOpNumThreads: 1,
  logSeverityLevel: 3,
}

/**
 * Opens a graph with ONNX Runtime's verbose log on stderr, which has the provider of each node. In
 * a process of its own: such a session also logs each operator that it runs.
 */
export const listNodes = async (path: string): Promise<void> => {
  const session = await InferenceSession.create(path, { ...sessionOptions, logSeverityLevel: 0 })
  await session.release()
}

/** `Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 9`; `All nodes` are not listed. */
const heading = /(All nodes|Node\(s\)) placed on \[(\w+)\]\. Number of nodes: (\d+)/
/** `  Gather (n_Gather_4)`. */
const nodeLine = /VerifyEachNodeIsAssignedToAnEp\]\s+(\w+) \(/

const unlisted = "all"

/** Reads ONNX Runtime's verbose log. */
export const placedNodes = (log: string): PlacedNodes => {
  const device: Record<string, number> = {}
  const cpu: Record<string, number> = {}
  let current: Record<string, number> | undefined
  for (const line of log.split("\n")) {
    const place = heading.exec(line)
    if (place) {
      current = place[2] === "CPUExecutionProvider" ? cpu : device
      if (place[1] === "All nodes") current[unlisted] = Number(place[3])
      continue
    }
    const operator = nodeLine.exec(line)?.[1]
    if (operator && current) current[operator] = (current[operator] ?? 0) + 1
  }
  return { device, cpu }
}

const mostLogBytes = 2 ** 28

const lists = new Map<string, PlacedNodes>()

/** The nodes of a graph in a file, listed by a process of its own. Throws why it can't be opened. */
export const nodesOf = (path: string): PlacedNodes => {
  const known = lists.get(path)
  if (known) return known
  const [main] = process.argv.slice(1)
  const listed = spawnSync(process.execPath, [main!, "nodes", path], {
    encoding: "utf8",
    maxBuffer: mostLogBytes,
    stdio: ["ignore", "ignore", "pipe"],
  })
  const nodes = placedNodes(listed.stderr)
  const lines = listed.stderr.trimEnd().split("\n")
  const thrown = lines.findLast((line) => line.startsWith("Error: ")) ?? lines.at(-1)
  if (listed.status !== 0)
    throw new Error(`${path}: the device can't open the graph (${listed.error?.message ?? thrown})`)
  lists.set(path, nodes)
  return nodes
}
