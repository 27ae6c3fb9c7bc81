import { type MessagePort, parentPort, workerData } from "node:worker_threads"
import { DeviceScan } from "./device-scan.ts"
import { searchPacked } from "./packed-rows.ts"
import type { FromScan, ScanThreadData, SearchMessage, ToScan } from "./protocol.ts"
import { RowIndex } from "./row-index.ts"
import { layoutOf, Slabs } from "./slabs.ts"

/** Keeps indices, and searches them message by message. What it throws ends the thread. */
const serve = (port: MessagePort, { slabs, deviceRows }: ScanThreadData): void => {
  const memory = new Slabs(slabs)
  const indices = new Map<number, RowIndex>()
  const answer = (message: FromScan) => port.postMessage(message)
  const device =
    deviceRows === undefined
      ? undefined
      : new DeviceScan(deviceRows, (toDevice) => answer({ toDevice }))
  const search = async (index: RowIndex, { index: no, query }: SearchMessage) => {
    const hits = await device?.search(no, index, query)
    if (hits) return hits
    return indices.get(no) === index ? index.search(query) : undefined
  }
  const handlers: {
    readonly [T in ToScan["type"]]: (message: Extract<ToScan, { readonly type: T }>) => void
  } = {
    open: ({ index, dimensions }) =>
      indices.set(index, new RowIndex(memory, layoutOf(dimensions)!)),
    add: ({ index, packed }) => indices.get(index)?.add(packed),
    remove: ({ index, documents }) => indices.get(index)?.remove(documents),
    drop: ({ index }) => {
      device?.drop(index)
      indices.get(index)?.clear()
      indices.delete(index)
    },
    device: ({ news }) => device?.receive(news),
    search: (message) => {
      const { id } = message
      const index = indices.get(message.index)
      if (!index) answer({ id, hits: undefined })
      else if (!device) answer({ id, hits: index.search(message.query) })
      else void search(index, message).then((hits) => answer({ id, hits }))
    },
    scan: ({ id, packed, query }) => answer({ id, hits: searchPacked(packed, query) }),
  }
  port.on("message", (message: ToScan) => {
    const handle = handlers[message.type] as (message: ToScan) => void
    handle(message)
  })
}

serve(parentPort!, workerData as ScanThreadData)
