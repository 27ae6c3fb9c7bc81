import { type MessagePort, parentPort, workerData } from "node:worker_threads"
import type { FromScan, ScanThreadData, ToScan } from "./protocol.ts"
import { RowIndex, searchPacked } from "./row-index.ts"
import { layoutOf, Slabs } from "./slabs.ts"

/** Keeps indices, and searches them message by message. What it throws ends the thread. */
const serve = (port: MessagePort, { slabs }: ScanThreadData): void => {
  const memory = new Slabs(slabs)
  const indices = new Map<number, RowIndex>()
  const answer = (message: FromScan) => port.postMessage(message)
  const handlers: {
    readonly [T in ToScan["type"]]: (message: Extract<ToScan, { readonly type: T }>) => void
  } = {
    open: ({ index, dimensions }) =>
      indices.set(index, new RowIndex(memory, layoutOf(dimensions)!)),
    add: ({ index, packed }) => indices.get(index)?.add(packed),
    remove: ({ index, documents }) => indices.get(index)?.remove(documents),
    drop: ({ index }) => {
      indices.get(index)?.clear()
      indices.delete(index)
    },
    search: ({ id, index, query }) => answer({ id, hits: indices.get(index)?.search(query) }),
    scan: ({ id, packed, query }) => answer({ id, hits: searchPacked(packed, query) }),
  }
  port.on("message", (message: ToScan) => {
    const handle = handlers[message.type] as (message: ToScan) => void
    handle(message)
  })
}

serve(parentPort!, workerData as ScanThreadData)
