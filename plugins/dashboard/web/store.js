import { useEffect, useState } from "preact/hooks"

/** A value that views subscribe to. */
export const makeStore = (initial) => {
  let value = initial
  const listeners = new Set()
  return {
    get: () => value,
    set: (next) => {
      value = next
      for (const listener of [...listeners]) listener(next)
    },
    subscribe: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export const useStore = (store) => {
  const [, redraw] = useState(store.get())
  useEffect(() => {
    const follow = () => redraw(store.get())
    follow()
    return store.subscribe(follow)
  }, [store])
  return store.get()
}

/** A JSON value in the browser's storage. Where storage is forbidden, reads return undefined and writes do nothing. */
export const makePersisted = (storage, key) => {
  const attempt = (work) => {
    try {
      return work()
    } catch {
      return undefined
    }
  }
  return {
    key,
    read: () => attempt(() => JSON.parse(storage().getItem(key) ?? "null")) ?? undefined,
    write: (value) =>
      attempt(() =>
        value === undefined
          ? storage().removeItem(key)
          : storage().setItem(key, JSON.stringify(value)),
      ),
  }
}
