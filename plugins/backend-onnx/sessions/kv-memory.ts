import { type KvNumbers, zeros } from "./kv-store.ts"

/** What all arrays that wait for another bank may take. */
const mostBytes = 32 * 2 ** 20

/**
 * Arrays that the banks of a session have given back. New memory costs a page fault for each 4 kB, and
 * much of it makes V8 collect garbage.
 */
export class KvMemory {
  /** Those that wait longest come first. */
  private readonly waiting: KvNumbers[] = []
  private readonly halves: boolean
  private bytes = 0

  constructor(halves: boolean) {
    this.halves = halves
  }

  /** Returns an array of finite numbers: zeros, or what another bank left. */
  take(length: number): KvNumbers {
    const at = this.waiting.findLastIndex((array) => array.length === length)
    const [array] = at < 0 ? [] : this.waiting.splice(at, 1)
    if (!array) return zeros(this.halves, length)
    this.bytes -= array.byteLength
    return array
  }

  /** The array must not be used any more. */
  giveBack(array: KvNumbers): void {
    this.waiting.push(array)
    this.bytes += array.byteLength
    while (this.bytes > mostBytes) this.bytes -= this.waiting.shift()!.byteLength
  }
}
