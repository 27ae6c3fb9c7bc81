import { createHash, randomBytes } from "node:crypto"
import * as OTPAuth from "otpauth"

const periodSeconds = 30
/** One step early or late: clocks of phones differ, and typing takes a moment. */
const window = 1

const totpOf = (secret: string, label?: { readonly issuer: string; readonly email: string }) =>
  new OTPAuth.TOTP({
    secret: OTPAuth.Secret.fromBase32(secret),
    period: periodSeconds,
    ...(label && { issuer: label.issuer, label: label.email }),
  })

/** 160 random bits in base32, as RFC 4226 recommends. */
export const makeTotpSecret = (): string => new OTPAuth.Secret({ size: 20 }).base32

/** The `otpauth://` address that authenticator apps read from a QR code. */
export const totpUrl = (secret: string, issuer: string, email: string): string =>
  totpOf(secret, { issuer, email }).toString()

/** The code of 6 digits at a time (RFC 6238: SHA-1, steps of 30 s). */
export const totpAt = (secret: string, nowMs: number): string =>
  totpOf(secret).generate({ timestamp: nowMs })

/** Returns the step that the code belongs to; undefined when it is wrong, too old or too new. */
export const stepOf = (secret: string, code: string, nowMs: number): number | undefined => {
  if (!/^\d{6}$/.test(code)) return undefined
  const delta = totpOf(secret).validate({ token: code, timestamp: nowMs, window })
  return delta === null ? undefined : Math.floor(nowMs / 1000 / periodSeconds) + delta
}

const letters = "abcdefghjkmnpqrstuvwxyz23456789"
const recoveryCodes = 10

const recoveryCode = (): string =>
  Array.from({ length: 4 }, () =>
    Array.from(randomBytes(4), (byte) => letters[byte % letters.length]).join(""),
  ).join("-")

/** Ten codes of about 79 random bits, each for one sign-in without the phone. */
export const makeRecoveryCodes = (): readonly string[] =>
  Array.from({ length: recoveryCodes }, recoveryCode)

/** Ignores case, spaces and hyphens. */
export const hashRecoveryCode = (code: string): Buffer =>
  createHash("sha256").update(code.toLowerCase().replace(/[\s-]/g, "")).digest()
