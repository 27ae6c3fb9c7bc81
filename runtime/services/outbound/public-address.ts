import ipaddr from "ipaddr.js"

type Bytes = readonly number[]

/**
 * The IPv4 address that a translator would take out of an IPv6 one: NAT64 (RFC 6052, the well-known
 * prefix 64:ff9b::/96).
 */
const translated = (bytes: Bytes): ipaddr.IPv4 | undefined => {
  const prefix = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]
  return prefix.every((byte, index) => bytes[index] === byte)
    ? new ipaddr.IPv4(bytes.slice(12))
    : undefined
}

/** The range of IPv6 that is assigned for public use. */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3")

/**
 * `unicast` for ipaddr.js, but not public: protocol assignments, test networks (RFC 6890, 9637),
 * and a cloud's host address.
 */
const special = [
  "192.0.0.0/24",
  "192.0.2.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "240.0.0.0/4",
  "168.63.129.16/32",
  "2001::/23",
  "2001:db8::/32",
  "3fff::/20",
].map((network) => ipaddr.parseCIDR(network))

const isSpecial = (address: ipaddr.IPv4 | ipaddr.IPv6): boolean =>
  special.some(
    ([network, bits]) =>
      network.kind() === address.kind() && address.match(network as ipaddr.IPv4, bits),
  )

/**
 * True for an address of the public internet, also in IPv6 notation. Loopback, private, link-local
 * (cloud metadata), CGNAT, multicast, reserved and tunnelled ones are not.
 */
export const isPublicAddress = (text: string): boolean => {
  if (!ipaddr.isValid(text)) return false
  const given = ipaddr.process(text)
  const address = given instanceof ipaddr.IPv6 ? (translated(given.toByteArray()) ?? given) : given
  if (address instanceof ipaddr.IPv6 && !address.match(globalUnicast)) return false
  return !isSpecial(address) && address.range() === "unicast"
}
