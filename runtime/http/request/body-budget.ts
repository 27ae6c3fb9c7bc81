/** What the bodies of all open requests may take together. */
export interface BodyBudget {
  take(bytes: number): boolean
  giveBack(bytes: number): void
}

export const makeBodyBudget = (maxBytes: number): BodyBudget => {
  let held = 0
  return {
    take: (bytes) => {
      if (held + bytes > maxBytes) return false
      held += bytes
      return true
    },
    giveBack: (bytes) => {
      held -= bytes
    },
  }
}
