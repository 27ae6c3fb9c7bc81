import { join } from "node:path"
import { writeGraph } from "../onnx/graph-cache.ts"
import { floats, openSession, type Session } from "../onnx/onnx-session.ts"
import { Tensor } from "../onnx/runtime.ts"
import type { AdapterFeeds, Feeds } from "./adapter-feeds.ts"
import type { AdapterChoice } from "./decoder.ts"

const files = { graph: "upload.onnx", weights: "upload.bin", target: "gpu" } as const

/** Writes the graph that brings numbers to a device. */
export const writeUpload = (folder: string): void =>
  writeGraph(folder, files, (graph) => {
    graph.input("numbers", "float", ["N"])
    graph.output("there", graph.node("Mul", ["numbers", graph.floats(1)]), "float", ["N"])
  })

/** The adapters of a decoder on a device, which get there when a pass first needs them. */
export class DeviceAdapters {
  private readonly feeds: AdapterFeeds
  private readonly upload: Session
  private readonly held = new Map<Feeds, Feeds>()

  private constructor(feeds: AdapterFeeds, upload: Session) {
    this.feeds = feeds
    this.upload = upload
  }

  static async open(folder: string, feeds: AdapterFeeds): Promise<DeviceAdapters> {
    const upload = await openSession(join(folder, files.graph), 1, { keepsOutputs: true })
    return new DeviceAdapters(feeds, upload)
  }

  get bytes(): number {
    return this.feeds.bytes
  }

  /** The inputs of a pass over rows with these adapters. */
  async forRows(rows: readonly (AdapterChoice | undefined)[]): Promise<Feeds> {
    const { weights, scales } = this.feeds.forRows(rows)
    // what no pass takes any more goes before more is brought
    for (const [known, tensors] of this.held)
      if (!this.feeds.isCurrent(known)) this.dispose(known, tensors)
    const there = this.held.get(weights) ?? (await this.bring(weights))
    this.held.set(weights, there)
    return { ...there, ...scales }
  }

  private async bring(weights: Feeds): Promise<Feeds> {
    const there: Record<string, Tensor> = {}
    for (const [name, { data, dims }] of Object.entries(weights)) {
      const numbers = floats(data as Float32Array, [data.length])
      const flat = (await this.upload.run({ numbers })).there!
      there[name] = Tensor.fromGpuBuffer(flat.gpuBuffer, {
        dataType: "float32",
        dims,
        dispose: () => flat.dispose(),
      })
    }
    return there
  }

  private dispose(known: Feeds, tensors: Feeds): void {
    this.held.delete(known)
    for (const tensor of Object.values(tensors)) tensor.dispose()
  }

  async close(): Promise<void> {
    for (const [known, tensors] of this.held) this.dispose(known, tensors)
    await this.upload.release()
  }
}
