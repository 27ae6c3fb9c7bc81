import ipaddr from "ipaddr.js"

type Bytes = readonly number[]

/** The IPv4 address inside of an IPv6 one, where a translator would take it out: NAT64 (RFC 6052, the well-known prefix 64:ff9b::/96). */
const translated = (bytes: Bytes): ipaddr.IPv4 | undefined => {
  const prefix = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]
  return prefix.every((byte, index) => bytes[index] === byte) ? new ipaddr.IPv4(bytes.slice(12)) : undefined
}

/** Not assigned to anybody's public use, but `unicast` to ipaddr.js: protocol assignments, test networks (RFC 6890) and local-use NAT64 (RFC 8215). */
const special = [
  "192.0.0.0/24",
  "192.0.2.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "240.0.0.0/4",
  "64:ff9b:1::/48",
  "2001:db8::/32",
  "2001::/23",
  "3fff::/20",
  "5f00::/16",
  "fec0::/10",
].map((network) => ipaddr.parseCIDR(network))

const isSpecial = (address: ipaddr.IPv4 | ipaddr.IPv6): boolean =>
  special.some(([network, bits]) => network.kind() === address.kind() && address.match(network as ipaddr.IPv4, bits))

/** An address of the public internet, also when it is written as IPv6. Loopback, private, link-local (cloud metadata), CGNAT, multicast, reserved and tunnelled ones are not. */
export const isPublicAddress = (text: string): boolean => {
  if (!ipaddr.isValid(text)) return false
  const given = ipaddr.process(text)
  const address = given.kind() === "ipv6" ? (translated(given.toByteArray()) ?? given) : given
  if (isSpecial(address)) return false
  return address.range() === "unicast"
}
