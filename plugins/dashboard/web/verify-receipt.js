const bytesOf = (base64url) =>
  Uint8Array.from(atob(base64url.replace(/-/g, "+").replace(/_/g, "/")), (letter) =>
    letter.charCodeAt(0),
  )

const jsonOf = (part) => JSON.parse(new TextDecoder().decode(bytesOf(part)))

/** The parts of a compact JWS (RFC 7515). */
export const readJws = (jws) => {
  const [header, payload, signature] = jws.split(".")
  return { header: jsonOf(header), payload: jsonOf(payload), signature: bytesOf(signature) }
}

/**
 * Checks a receipt's Ed25519 signature (RFC 8037) in this browser. "right", "wrong", "unknown" (none of the keys signed it), or "unable":
 * the browser has no Ed25519, or the page came without HTTPS.
 */
export const verifyReceipt = async (jws, { keys }, subtle = globalThis.crypto?.subtle) => {
  const { header, signature } = readJws(jws)
  const jwk = keys.find(({ kid }) => kid === header.kid)
  if (!jwk) return "unknown"
  const { kty, crv, x } = jwk
  const key = await subtle
    ?.importKey("jwk", { kty, crv, x }, { name: "Ed25519" }, false, ["verify"])
    .catch(() => undefined)
  if (!key) return "unable"
  const signed = new TextEncoder().encode(jws.slice(0, jws.lastIndexOf(".")))
  return (await subtle.verify({ name: "Ed25519" }, key, signature, signed)) ? "right" : "wrong"
}
