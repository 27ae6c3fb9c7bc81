/** Word of cancels inside of this process; a worker in another one finds the batch's row changed. */
export interface Cancels {
  tell(batch: string): void
  /** Answers how to stop listening. */
  listen(batch: string, told: () => void): () => void
}

export const makeCancels = (): Cancels => {
  const listeners = new Map<string, Set<() => void>>()
  return {
    tell: (batch) => {
      for (const told of listeners.get(batch) ?? []) told()
    },
    listen: (batch, told) => {
      const those = listeners.get(batch) ?? new Set()
      listeners.set(batch, those.add(told))
      return () => {
        those.delete(told)
        if (those.size === 0) listeners.delete(batch)
      }
    },
  }
}
