import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { isPublicAddress } from "./public-address.ts"

const closed = [
  [
    "loopback",
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::127.0.0.1",
    "::7f00:1",
  ],
  ["unspecified", "0.0.0.0", "0.1.2.3", "::"],
  [
    "private",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "fc00::1",
    "fd12:3456::1",
    "::ffff:10.0.0.1",
  ],
  [
    "link-local and cloud metadata",
    "169.254.169.254",
    "169.254.0.1",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "fe80::1",
    "fe80::1%eth0",
    "::ffff:169.254.169.254",
    "fd00:ec2::254",
  ],
  ["CGNAT", "100.64.0.1", "100.127.255.254"],
  ["multicast and broadcast", "224.0.0.1", "239.255.255.255", "255.255.255.255", "ff02::1"],
  [
    "reserved and test networks",
    "240.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.7",
    "192.0.0.8",
    "2001:db8::1",
    "3fff::1",
    "100::1",
    "::10.0.0.1",
    "1::1",
    "4000::1",
    "fec0::1",
  ],
  [
    "NAT64 to a closed address, and its local prefix",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
  ],
  ["tunnels", "2002:7f00:1::", "2002:808:808::1", "2001::1"],
  ["no address", "", "localhost", "1.2.3.4.5", "999.1.1.1", "example.com"],
] as const

describe("addresses that are not public", () => {
  for (const [what, ...addresses] of closed)
    it(what, () => {
      for (const address of addresses) expect(isPublicAddress(address), address).toBe(false)
    })
})

it("public addresses are, in every form", () => {
  for (const address of [
    "8.8.8.8",
    "1.1.1.1",
    "100.63.255.255",
    "100.128.0.0",
    "172.32.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2606:4700::1111",
    "2a00:1450:4001::",
  ])
    expect(isPublicAddress(address), address).toBe(true)
})

it("an IPv4 address and its forms in IPv6 are judged alike", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(isPublicAddress(`::ffff:${address}`)).toBe(isPublicAddress(address))
      expect(isPublicAddress(`64:ff9b::${address}`)).toBe(isPublicAddress(address))
    }),
  )
})
