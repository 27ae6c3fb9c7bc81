import { hash } from "node:crypto"
import { randomText } from "../../core/index.ts"

export type KeyMode = "live" | "test"

const ownForm = /^svc_(?:live|test)_[A-Za-z0-9]{32}$/

/** Makes a key: `svc_live_` or `svc_test_`, and 32 characters with 190 random bits. */
export const makeApiKey = (mode: KeyMode): string => `svc_${mode}_${randomText(32)}`

/**
 * Whether a text can be a key. Made keys are stricter; an operator's own (RAKIT_API_KEY) may have
 * any form.
 */
export const isUsableKey = (text: string): boolean => /^[\x21-\x7e]{16,200}$/.test(text)

export const usableKeyRule = "16 to 200 visible ASCII characters, without spaces"

/** Unsalted: a key is long and random, so it can't be guessed, and an index finds it. */
export const sha256Of = (key: string): Buffer => hash("sha256", key, "buffer")

/** The first characters, for display. An operator's own key may be short, so fewer are shown. */
export const displayPrefix = (key: string): string => key.slice(0, ownForm.test(key) ? 12 : 4)

export const modeOf = (key: string): KeyMode => (key.startsWith("svc_test_") ? "test" : "live")
