/**
 * Cancel requests from the API to the worker of the same process; a worker elsewhere finds the
 * batch's row changed.
 */
export interface Cancels {
  publish(batch: string): void
  /** Returns the function that ends the subscription. */
  subscribe(batch: string, onCancel: () => void): () => void
}

export const makeCancels = (): Cancels => {
  const listeners = new Map<string, Set<() => void>>()
  return {
    publish: (batch) => {
      for (const onCancel of listeners.get(batch) ?? []) onCancel()
    },
    subscribe: (batch, onCancel) => {
      const ofBatch = listeners.get(batch) ?? new Set()
      listeners.set(batch, ofBatch.add(onCancel))
      return () => {
        ofBatch.delete(onCancel)
        if (ofBatch.size === 0) listeners.delete(batch)
      }
    },
  }
}
