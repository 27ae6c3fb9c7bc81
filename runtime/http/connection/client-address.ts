import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import ipaddr from "ipaddr.js"

/** Parses `10.0.0.0/8` or `::1`; undefined for anything else. */
export const parseNetwork = (
  text: string,
): readonly [ipaddr.IPv4 | ipaddr.IPv6, number] | undefined => {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  if (!ipaddr.isValid(text)) return undefined
  const address = ipaddr.parse(text)
  return [address, address.kind() === "ipv4" ? 32 : 128]
}

const plainForm = (text: string | undefined): string | undefined => {
  const bare = text
    ?.trim()
    .replace(/^\[([^\]]*)\](?::\d+)?$/, "$1")
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
  return bare !== undefined && ipaddr.isValid(bare) ? ipaddr.process(bare).toString() : undefined
}

/**
 * The address of the client: the socket's, or, as long as that is a trusted proxy's, the next one
 * from the end of
 * `X-Forwarded-For`.
 * Anything before the first untrusted address could be forged.
 */
export const makeAddressOf = (
  trustedProxies: readonly string[],
): ((req: IncomingMessage) => string) => {
  const networks = trustedProxies.map(parseNetwork).filter((network) => network !== undefined)
  const isTrusted = (text: string) => {
    const address = ipaddr.parse(text)
    return networks.some(
      ([network, bits]) =>
        address.kind() === network.kind() && address.match(network as ipaddr.IPv4, bits),
    )
  }
  // cached by socket: parsing an address takes as long as finding a route
  const peers = new WeakMap<Socket, string>()
  const peerOf = ({ socket }: IncomingMessage): string => {
    const known = peers.get(socket)
    if (known !== undefined) return known
    const address = plainForm(socket.remoteAddress)
    if (address !== undefined) peers.set(socket, address)
    return address ?? "unknown"
  }
  return (req) => {
    let address = peerOf(req)
    if (networks.length === 0) return address
    const forwarded = [req.headers["x-forwarded-for"] ?? []].flat().join(",").split(",").reverse()
    for (const hop of forwarded) {
      if (address === "unknown" || !isTrusted(address)) return address
      const before = plainForm(hop)
      if (before === undefined) return address
      address = before
    }
    return address
  }
}
