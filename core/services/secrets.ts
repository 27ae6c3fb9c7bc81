/** Encrypts what has to be readable again: signing keys, webhook secrets, replies that show a new key. What need not be read again is hashed. */
export interface Secrets {
  /** Names the key that encrypts here; a server with another data folder may have another, unless the operator gives all of them one. */
  readonly keyId: string
  encrypt(plain: string): string
  /** Undefined when it was encrypted with another key, or altered. */
  decrypt(encrypted: string): string | undefined
}
