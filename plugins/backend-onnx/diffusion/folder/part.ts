import { join } from "node:path"
import type { EncoderBuilding } from "../../encoding/encoder-model.ts"
import {
  cachedGraph,
  digestOf,
  type GraphPlace,
  graphFile,
  knownIn,
} from "../../onnx/graph-cache.ts"
import type { Precision } from "../../onnx/linear.ts"
import { openSession, type Port, type Session } from "../../onnx/onnx-session.ts"
import { explaining } from "../../weights/model-file-error.ts"
import { openSafetensorsFolder, weightFilesIn } from "../../weights/safetensors-folder.ts"

/** How the parts of a model are opened. */
export interface PartHost extends GraphPlace {
  readonly threads: number
  readonly precision: Precision
  /** Only one part is in memory at a time: using one closes the others. */
  readonly offload: boolean
  /** LoRAs in local files or folders. */
  readonly adapters?: readonly { readonly id: string; readonly path: string }[]
  /** The most memory that they may take. */
  readonly adapterBytes?: number
  progress(detail: string): void
}

/** A graph of a part of a pipeline, such as its text encoder. */
export interface PartGraph {
  /** Name of the part, for messages. */
  readonly name: string
  /** Folder of its weights. */
  readonly path: string
  /** What the graph depends on besides the weights: the version of its builder, and its sizes. */
  readonly key: readonly unknown[]
  build(building: EncoderBuilding, progress: (detail: string) => void): void
}

/** A part, whose graph is built, and whose session is open or opens when it is used. */
export interface Part {
  inputs(): Promise<readonly Port[]>
  run(feeds: Parameters<Session["run"]>[0]): ReturnType<Session["run"]>
}

const graphOf = (host: PartHost, part: PartGraph): string => {
  const known = knownIn(host.graphs)
  const contents = weightFilesIn(part.path).map((name) => known.of(join(part.path, name)))
  const digest = digestOf(["diffusion", part.key, contents, host.precision])
  return cachedGraph(host, digest, (graph) => {
    const file = openSafetensorsFolder(part.path)
    try {
      explaining(file.path, () =>
        part.build({ graph, file, precision: host.precision }, (detail) =>
          host.progress(`building ${part.name}: ${detail}`),
        ),
      )
    } finally {
      file.close()
    }
  })
}

/** The parts of a model, in the thread that runs them. */
export class Parts {
  readonly host: PartHost
  private readonly sessions = new Map<string, Session>()

  constructor(host: PartHost) {
    this.host = host
  }

  /** Builds a part's graph, unless the cache has it. Throws `ModelFileError`. */
  async open(part: PartGraph): Promise<Part> {
    const folder = graphOf(this.host, part)
    if (!this.host.offload) await this.session(part.name, folder)
    const session = () => this.session(part.name, folder)
    return {
      inputs: async () => (await session()).inputs,
      run: async (feeds) => (await session()).run(feeds),
    }
  }

  private async session(name: string, folder: string): Promise<Session> {
    const known = this.sessions.get(name)
    if (known) return known
    if (this.host.offload) await this.close()
    this.host.progress(`loading ${name}`)
    const { threads } = this.host
    const session = await openSession(join(folder, graphFile), threads, { memoryPattern: false })
    this.sessions.set(name, session)
    return session
  }

  async close(): Promise<void> {
    const open = [...this.sessions.values()]
    this.sessions.clear()
    for (const session of open) await session.release()
  }
}
