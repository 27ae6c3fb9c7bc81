/** A map that evicts the least recently used entry when it is full. */
export interface BoundedMap<K, V> {
  readonly size: number
  get(key: K): V | undefined
  set(key: K, value: V): void
  delete(key: K): void
  /** Does not count as use. Entries deleted during the iteration are skipped. */
  entries(): Iterable<readonly [K, V]>
}

export const makeBoundedMap = <K, V extends object | number>(
  maxEntries: number,
): BoundedMap<K, V> => {
  // a Map iterates in the order of insertion, so the most recently used entry is the last
  const entries = new Map<K, V>()
  return {
    get size() {
      return entries.size
    },
    get: (key) => {
      const value = entries.get(key)
      if (value === undefined) return undefined
      entries.delete(key)
      entries.set(key, value)
      return value
    },
    set: (key, value) => {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size <= maxEntries) return
      for (const oldest of entries.keys()) return void entries.delete(oldest)
    },
    delete: (key) => void entries.delete(key),
    entries: () => entries.entries(),
  }
}
