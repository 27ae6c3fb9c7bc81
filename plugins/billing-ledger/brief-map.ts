interface Box<V> {
  value: V | undefined
}

/**
 * A Map of what comes and goes with calls, in the order in which it came. A Map leaves its old table
 * behind whenever it grows or shrinks, with what was in it and a pointer to the next table: once V8
 * has moved one of them into its old heap, the entries of all later ones stay in memory until the
 * next full collection. Here they are boxes, of which an entry that is deleted leaves an empty one.
 */
export class BriefMap<K, V> {
  readonly #boxes = new Map<K, Box<V>>()

  get size(): number {
    return this.#boxes.size
  }

  has(key: K): boolean {
    return this.#boxes.has(key)
  }

  get(key: K): V | undefined {
    return this.#boxes.get(key)?.value
  }

  set(key: K, value: V): void {
    this.delete(key)
    this.#boxes.set(key, { value })
  }

  /** Does nothing where there is no such entry. */
  delete(key: K): void {
    const box = this.#boxes.get(key)
    if (!box) return
    box.value = undefined
    this.#boxes.delete(key)
  }

  /** The key of the entry that came first. */
  oldestKey(): K | undefined {
    return this.#boxes.keys().next().value
  }

  /** The value that came first. */
  oldest(): V | undefined {
    return this.#boxes.values().next().value?.value
  }

  values(): readonly V[] {
    return Array.from(this.#boxes.values(), ({ value }) => value as V)
  }
}
