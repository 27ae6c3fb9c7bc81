import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from "jose"

export const algorithm = "EdDSA"

/** An Ed25519 key (RFC 8037). */
export interface PublicJwk {
  readonly kty: "OKP"
  readonly crv: "Ed25519"
  readonly x: string
}

export interface NewKey {
  /** The thumbprint of the public key (RFC 7638). */
  readonly kid: string
  readonly publicJwk: PublicJwk
  /** JSON text, to be encrypted. */
  readonly privateJwk: string
}

export const makeKeyPair = async (): Promise<NewKey> => {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, {
    crv: "Ed25519",
    extractable: true,
  })
  const publicJwk = (await exportJWK(publicKey)) as PublicJwk
  return {
    kid: await calculateJwkThumbprint(publicJwk),
    publicJwk,
    privateJwk: JSON.stringify(await exportJWK(privateKey)),
  }
}

const importKey = async (jwk: object): Promise<CryptoKey> => {
  const key = await importJWK(jwk, algorithm)
  if (key instanceof Uint8Array) throw new Error("it is a symmetric key")
  return key
}

/** Takes only these members: others in the row must not turn it into another kind of key. */
export const importPublic = ({ kty, crv, x }: PublicJwk): Promise<CryptoKey> =>
  importKey({ kty, crv, x })

export const importPrivate = (privateJwk: string): Promise<CryptoKey> =>
  importKey(JSON.parse(privateJwk) as object)
