import type { Ids } from "../../core/services/ids.ts"

/** Counting ids: `00000000-0000-7000-8000-000000000001`, `chatcmpl-2` ... */
export const fakeIds = (): Ids => {
  let n = 0
  return {
    call: () => `00000000-0000-7000-8000-${String(++n).padStart(12, "0")}`,
    make: (prefix) => `${prefix}${++n}`,
  }
}
