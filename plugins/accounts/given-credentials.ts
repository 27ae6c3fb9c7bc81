import { Redacted } from "effect"
import { parseEmail } from "./email.ts"
import type { Settings } from "./settings.ts"

/** The credentials of the first account that the operator sets; the others are generated. */
export interface GivenCredentials {
  readonly email: string | undefined
  readonly password: string | undefined
  readonly apiKey: string | undefined
}

/**
 * An empty text counts as not set. The schema of the settings has already refused unusable values.
 */
export const readGivenCredentials = (settings: Settings): GivenCredentials => ({
  email: parseEmail(settings.adminEmail),
  password: Redacted.value(settings.adminPassword) || undefined,
  apiKey: Redacted.value(settings.apiKey) || undefined,
})
