import { describe, expect, it } from "vitest"
import { allowedHostPorts, refusalOf } from "./refusal.ts"

const allowed = {
  hosts: allowedHostPorts([
    "127.0.0.1:9000",
    "Hooks:9001",
    "[0:0:0:0:0:0:0:1]:9002",
    "[::1]:80",
    "private.example.com:25",
  ]),
  ports: new Set(["8443"]),
}

describe("a URL that is refused without asking the network", () => {
  it.each([
    [
      "no URL",
      "",
      "nonsense",
      "/path",
      "//example.com/",
      "https:example.com",
      "https:/example.com",
      "https:///example.com/",
      "https:///user:secret@example.com/",
      "https://",
      "https://example.com:65536/",
      `https://example.com/${"a".repeat(2048)}`,
    ],
    [
      "not https",
      "http://example.com/",
      "HTTP://example.com/",
      "ftp://example.com/",
      "file:///etc/passwd",
      "wss://example.com/",
    ],
    [
      "a user",
      "https://user:secret@example.com/",
      "https://user@example.com/",
      "https://@example.com/",
      "https://:@example.com/",
      "https://example.com@10.0.0.1/",
    ],
    [
      "misleading",
      " https://example.com/",
      "https://example.com/\n",
      "https://exam\tple.com/",
      "https:\\\\example.com/",
      "https://example.com\\@127.0.0.1/",
      "https://example.com/\0",
    ],
    [
      "IPv4 in every notation",
      "https://127.0.0.1/",
      "https://127.1/",
      "https://0x7f.0.0.1/",
      "https://0177.0.0.1/",
      "https://2130706433/",
      "https://0/",
      "https://127.0.0.1./",
    ],
    [
      "IPv4 in other digits",
      "https://１２７.0.0.1/",
      "https://127。0。0。1/",
      "https://%31%32%37.0.0.1/",
    ],
    [
      "IPv6",
      "https://[::1]/",
      "https://[::]/",
      "https://[::ffff:127.0.0.1]/",
      "https://[::127.0.0.1]/",
      "https://[64:ff9b::7f00:1]/",
      "https://[fe80::1%25eth0]/",
      "https://[fd00::1]/",
    ],
    [
      "closed networks",
      "https://169.254.169.254/latest/meta-data",
      "https://100.64.0.1/",
      "https://10.0.0.1/",
      "https://192.168.0.1:8443/",
    ],
    [
      "local names",
      "https://localhost/",
      "https://LOCALHOST.:8443/",
      "https://db.localhost/",
      "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
      "https://localhost.localdomain/",
      "https://printer.local/",
    ],
    [
      "names of clouds",
      "https://metadata.google.internal/",
      "https://metadata.goog/",
      "https://metadata/",
      "https://kubernetes/",
      "https://instance-data/",
    ],
    [
      "no names",
      "https://./",
      "https://a..b/",
      "https://*/",
      `https://${"a".repeat(64)}.com/`,
      `https://${"a.".repeat(130)}com/`,
      "https://example.com:0/",
    ],
    [
      "ports that are no web server's",
      "https://example.com:22/",
      "https://example.com:25/",
      "https://example.com:444/",
      "https://example.com:5432/",
      "https://8.8.8.8:6379/",
      "https://[2606:4700::1111]:8080/",
      "https://private.example.com:26/",
    ],
    [
      "not quite what is allowed",
      "http://127.0.0.1:9001/",
      "http://localhost:9000/",
      "http://u@127.0.0.1:9000/",
      "ftp://127.0.0.1:9000/",
    ],
  ])("%s", (_, ...urls) => {
    for (const url of urls) expect(refusalOf(url, allowed), url).toMatch(/^It /)
  })
})

it("a public address or name is not refused, nor is what is allowed, however it is written", () => {
  for (const url of [
    ...[
      "https://example.com/hook?x=1#y",
      "https://localhost.example.com/",
      "https://8.8.8.8:8443/",
      "https://münchen.de/",
      "https://example.com./",
      "HTTPS://Example.com/a@b",
      "https://example.com:443/",
      "https://example.com:0443/",
      "https://example.com:80/",
      "https://private.example.com:25/",
    ],
    ...["https://[2606:4700::1111]/", "https://[64:ff9b::8.8.8.8]/"],
    ...[
      "http://127.0.0.1:9000/hook",
      "https://127.0.0.1:9000/",
      "http://127.1:9000/",
      "http://HOOKS:9001/",
      "http://hooks:9001/",
      "http://[::1]:9002/",
      "http://[::1]/",
    ],
  ])
    expect(refusalOf(url, allowed), url).toBeUndefined()
})
