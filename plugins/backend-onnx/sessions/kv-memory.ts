import { MessageChannel } from "node:worker_threads"
import { addon } from "../kernels/addon.ts"
import { type KvNumbers, zeros } from "./kv-store.ts"

/** What the arrays of several banks may take while they wait for another one. */
const fewBytes = 8 * 2 ** 20
/** The same of the one that was given back last: a repeated prompt asks for as much. */
const mostBytes = 32 * 2 ** 20

/** From so many bytes on, rounding an array up to large pages, of 2 MB, costs little. */
const largeBytes = 4 * 2 ** 20

const bytesOf = (arrays: readonly KvNumbers[]): number =>
  arrays.reduce((sum, { byteLength }) => sum + byteLength, 0)

const { port1: nowhere, port2: other } = new MessageChannel()
nowhere.close()
other.close()

/**
 * Returns their memory at once, where V8 would do so at its next full collection: a port that is
 * closed drops what is transferred to it. They have no numbers any more.
 */
const free = (arrays: readonly KvNumbers[]): void =>
  nowhere.postMessage(
    undefined,
    arrays.map(({ buffer }) => buffer as ArrayBuffer),
  )

/**
 * Arrays that the banks of a session have given back. New memory costs a page fault for each 4 kB, and
 * much of it makes V8 collect garbage. They are held weakly, so that a full collection, as that of an
 * idle thread, frees them.
 */
export class KvMemory {
  /** Those that wait longest come first. */
  private waiting: WeakRef<KvNumbers>[] = []
  private readonly halves: boolean

  constructor(halves: boolean) {
    this.halves = halves
  }

  /** Returns an array of finite numbers: zeros, or what another bank left. */
  take(length: number): KvNumbers {
    const at = this.waiting.findLastIndex((array) => array.deref()?.length === length)
    const [array] = at < 0 ? [] : this.waiting.splice(at, 1)
    return array?.deref() ?? this.make(length)
  }

  private make(length: number): KvNumbers {
    const made = zeros(this.halves, length)
    if (made.byteLength >= largeBytes) addon?.adviseLargePages(made.buffer)
    return made
  }

  /** The arrays of a bank, which must not be used any more. */
  giveBack(arrays: readonly KvNumbers[]): void {
    const most = Math.min(mostBytes, Math.max(fewBytes, bytesOf(arrays)))
    const kept = this.waiting.flatMap((array) => array.deref() ?? [])
    kept.push(...arrays)
    let bytes = bytesOf(kept)
    let dropped = 0
    while (bytes > most) bytes -= kept[dropped++]!.byteLength
    free(kept.splice(0, dropped))
    this.waiting = kept.map((array) => new WeakRef(array))
  }
}
