import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto"
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeFolders } from "../../core/folders.ts"
import type { Secrets } from "../../core/services/secrets.ts"

const algorithm = "aes-256-gcm"
const ivBytes = 12
const tagBytes = 16

/**
 * AES-256-GCM (NIST SP 800-38D) under a key derived from `master` (HKDF, RFC 5869). Encrypted:
 * `<keyId>.<base64url of iv, tag, ciphertext>`.
 */
export const makeSecrets = (master: string): Secrets => {
  const key = Buffer.from(hkdfSync("sha256", master, "rakit", "secrets v1", 32))
  const keyId = createHash("sha256").update(key).digest("hex").slice(0, 12)
  return {
    keyId,
    encrypt: (plain) => {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv(algorithm, key, iv)
      const body = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()])
      return `${keyId}.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url")}`
    },
    decrypt: (encrypted) => {
      const [by, text = ""] = encrypted.split(".", 2)
      const bytes = Buffer.from(text, "base64url")
      if (by !== keyId || bytes.length < ivBytes + tagBytes) return undefined
      try {
        const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, ivBytes), {
          authTagLength: tagBytes,
        })
        decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes))
        return Buffer.concat([
          decipher.update(bytes.subarray(ivBytes + tagBytes)),
          decipher.final(),
        ]).toString("utf8")
      } catch {
        return undefined
      }
    },
  }
}

/**
 * Returns the given secret, or the content of `<dataDir>/secret.key`, which the first start creates
 * (mode 0600, atomically).
 */
export const masterSecret = (given: string, dataDir: string): string => {
  if (given !== "") return given
  const file = join(dataDir, "secret.key")
  if (!existsSync(file)) {
    makeFolders(dataDir, 0o700)
    const draft = `${file}.${randomBytes(6).toString("hex")}.tmp`
    writeFileSync(draft, randomBytes(32).toString("base64url"), { mode: 0o600, flush: true })
    try {
      linkSync(draft, file)
    } catch (cause) {
      // another process of this deployment was first: its key counts
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause
    } finally {
      rmSync(draft, { force: true })
    }
  }
  return readFileSync(file, "utf8").trim()
}

/** Reads or creates the master secret at the first use, as `rakit check` must not write. */
export const lazySecrets = (given: string, dataDir: string): Secrets => {
  let made: Secrets | undefined
  const secrets = () => {
    made ??= makeSecrets(masterSecret(given, dataDir))
    return made
  }
  return {
    get keyId() {
      return secrets().keyId
    },
    encrypt: (plain) => secrets().encrypt(plain),
    decrypt: (encrypted) => secrets().decrypt(encrypted),
  }
}
