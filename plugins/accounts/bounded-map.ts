/** A map that forgets what was used least recently when it is full. */
export interface BoundedMap<K, V> {
  readonly size: number
  get(key: K): V | undefined
  set(key: K, value: V): void
  delete(key: K): void
  /** Touches nothing. What is deleted meanwhile is left out. */
  entries(): Iterable<readonly [K, V]>
}

export const makeBoundedMap = <K, V extends object | number>(
  maxEntries: number,
): BoundedMap<K, V> => {
  // a Map iterates in the order of insertion, so what was touched last lies at the end
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
