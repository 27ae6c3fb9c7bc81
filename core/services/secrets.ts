/**
 * Encrypts values that must be readable again: signing keys, webhook secrets, replies that show a
 * new key. Everything else is hashed.
 */
export interface Secrets {
  /**
   * Id of this server's encryption key. Servers with their own data folders have different keys,
   * unless the operator sets a shared one.
   */
  readonly keyId: string
  encrypt(plain: string): string
  /** Returns undefined when the text was encrypted with another key, or altered. */
  decrypt(encrypted: string): string | undefined
}
