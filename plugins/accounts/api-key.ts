import { createHash } from "node:crypto"
import { randomText } from "../../core/index.ts"

export type KeyMode = "live" | "test"

const ownForm = /^svc_(?:live|test)_[A-Za-z0-9]{32}$/

/** `svc_live_` or `svc_test_`, and 32 characters: 190 random bits. */
export const makeApiKey = (mode: KeyMode): string => `svc_${mode}_${randomText(32)}`

/** What a key may look like at all. Those that we make are stricter; an operator's own (RAKIT_API_KEY) may have any form. */
export const isUsableKey = (text: string): boolean => /^[\x21-\x7e]{16,200}$/.test(text)

export const usableKeyRule = "16 to 200 visible ASCII characters, without spaces"

/** Unsalted: a key is random and long, so there is nothing to guess, and one index finds it. */
export const sha256Of = (key: string): Buffer => createHash("sha256").update(key).digest()

/** An operator's own key may be short, so less of it is shown. */
export const displayPrefix = (key: string): string => key.slice(0, ownForm.test(key) ? 12 : 4)

export const modeOf = (key: string): KeyMode => (key.startsWith("svc_test_") ? "test" : "live")
