/**
 * A changed key; a changed account, which affects all its keys and sessions; an ended session, which
 * affects the key that was made for it.
 */
export type KeyChange =
  | { readonly key: string }
  | { readonly account: string }
  | { readonly session: string }

/**
 * Invalidates the caches of this process at once; entries in those of other servers expire within 3
 * s.
 */
export interface KeyChanges {
  /** Call it after the change has committed. */
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
