/** What was changed: one key, or an account and so all of its keys. */
export type KeyChange = { readonly key: string } | { readonly account: string }

/** Tells the caches of this process at once; those of other servers end by themselves, within 3 s. */
export interface KeyChanges {
  /** After the change has committed. */
  announce(change: KeyChange): void
  onChange(listener: (change: KeyChange) => void): void
}

export const makeKeyChanges = (): KeyChanges => {
  const listeners: ((change: KeyChange) => void)[] = []
  return {
    announce: (change) => {
      for (const listener of listeners) listener(change)
    },
    onChange: (listener) => void listeners.push(listener),
  }
}
