import type { ScoredChunk } from "./best.ts"
import { columnBytes, type DeviceNews, type FromDevice, type ToDevice } from "./device/protocol.ts"
import type { ScanQuery } from "./packed-rows.ts"
import type { RowIndex } from "./row-index.ts"

/**
 * An index on the device. States: opening -> loading (rows go there, a piece at a time) -> ready;
 * ready -> loading (rows have changed) -> ready; opening or ready -> opening (it needs more room);
 * any -> refused (the device has no room), which lasts.
 */
interface Mirror {
  state: "opening" | "loading" | "ready" | "refused"
  capacity: number
  /** Slabs that are still to be sent. */
  slabs: number[]
  /** Pieces that the device has not yet stored. */
  pending: number
}

const pieceBytes = 2 ** 20
/** Pieces on their way at once: each is in memory several times. */
const mostPending = 4
/** A search takes so long at most; after that the CPU makes it. */
const limitMs = 5_000

/**
 * The device's part of searches, as the thread sees it: it has copies of large indices, and says
 * which rows may be among the best. Undefined means that the CPU searches: while rows are on their
 * way, where the device has no room, when it was lost or takes too long, or when rows changed
 * meanwhile.
 */
export class DeviceScan {
  private readonly send: (message: ToDevice) => void
  private readonly leastRows: number
  private readonly mirrors = new Map<number, Mirror>()
  private readonly indices = new Map<number, RowIndex>()
  private readonly waiting = new Map<number, (rows: Uint32Array | undefined) => void>()
  private lastId = 0

  constructor(leastRows: number, send: (message: ToDevice) => void) {
    this.leastRows = leastRows
    this.send = send
  }

  async search(
    no: number,
    index: RowIndex,
    query: ScanQuery,
  ): Promise<readonly ScoredChunk[] | undefined> {
    if (index.count < this.leastRows || query.ranges || query.limit < 1) return undefined
    if (!this.isReady(no, index)) return undefined
    const { changes } = index
    const rows = await this.ask(no, index, query)
    return rows && index.changes === changes ? index.bestOf(rows, query) : undefined
  }

  private ask(no: number, index: RowIndex, query: ScanQuery): Promise<Uint32Array | undefined> {
    const id = ++this.lastId
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle(undefined), limitMs)
      const settle = (rows: Uint32Array | undefined) => {
        clearTimeout(timer)
        this.waiting.delete(id)
        resolve(rows)
      }
      this.waiting.set(id, settle)
      this.send({ type: "search", id, index: no, ...index.firstPass(query) })
    })
  }

  /** False while rows are on their way to the device, which begins here. */
  private isReady(no: number, index: RowIndex): boolean {
    const mirror = this.mirrors.get(no)
    if (!mirror) {
      this.indices.set(no, index)
      this.mirrors.set(no, { state: "opening", capacity: 0, slabs: [], pending: 0 })
      this.open(no, index)
      return false
    }
    if (mirror.state !== "ready") return false
    const changed = index.takeChanged()
    if (changed.length === 0) return true
    if (index.count > mirror.capacity) this.open(no, index)
    else this.load(no, mirror, changed)
    return false
  }

  private open(no: number, index: RowIndex): void {
    const mirror = this.mirrors.get(no)!
    mirror.state = "opening"
    // room to grow before all of it is sent again
    mirror.capacity = Math.ceil(index.count * 1.25)
    const { stride } = index.layout
    this.send({ type: "open", index: no, stride, rows: mirror.capacity })
  }

  private load(no: number, mirror: Mirror, slabs: readonly number[]): void {
    mirror.state = "loading"
    mirror.slabs = [...slabs]
    this.sendPieces(no, mirror)
  }

  /** Sends neighbouring slabs together, until enough pieces are on their way. */
  private sendPieces(no: number, mirror: Mirror): void {
    const index = this.indices.get(no)!
    const { stride, rows: rowsOfSlab } = index.layout
    const most = Math.max(1, Math.floor(pieceBytes / (rowsOfSlab * stride)))
    while (mirror.pending < mostPending && mirror.slabs.length > 0) {
      const from = mirror.slabs.shift()!
      let count = 1
      while (count < most && mirror.slabs[0] === from + count) {
        mirror.slabs.shift()
        count++
      }
      const first = from * rowsOfSlab
      const rows = Math.min(count * rowsOfSlab, index.count - first)
      if (rows < 1) continue
      const int8 = new Uint8Array(rows * stride)
      const columns = new Uint8Array(rows * columnBytes)
      index.copyRows(first, rows, int8, columns)
      mirror.pending++
      this.send({ type: "rows", index: no, first, int8, columns })
    }
    if (mirror.pending === 0) mirror.state = "ready"
  }

  receive(news: DeviceNews): void {
    if (news.type === "lost") this.forget()
    else if (news.type === "found") this.waiting.get(news.id)?.(news.rows)
    else {
      // undefined: it was dropped meanwhile
      const mirror = this.mirrors.get(news.index)
      if (mirror) this.advance(news, mirror)
    }
  }

  private advance(
    { type, index: no }: Extract<FromDevice, { readonly index: number }>,
    mirror: Mirror,
  ): void {
    if (type === "refused") mirror.state = "refused"
    else if (type === "opened") {
      const index = this.indices.get(no)!
      index.takeChanged()
      this.load(no, mirror, index.allSlabs())
    } else {
      mirror.pending--
      this.sendPieces(no, mirror)
    }
  }

  drop(no: number): void {
    if (!this.mirrors.delete(no)) return
    this.indices.delete(no)
    this.send({ type: "drop", index: no })
  }

  /** The next search begins anew. */
  private forget(): void {
    this.mirrors.clear()
    this.indices.clear()
    for (const settle of [...this.waiting.values()]) settle(undefined)
  }
}
