import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { agentOf } from "./agent.ts"

const webkit = "AppleWebKit/537.36 (KHTML, like Gecko)"

describe("a User-Agent in words", () => {
  it.each([
    [
      "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
      "Firefox 128",
      "Linux",
    ],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/126.0.0.0 Safari/537.36`,
      "Chrome 126",
      "Windows",
    ],
    [
      `Mozilla/5.0 (Windows NT 10.0) ${webkit} Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0`,
      "Edge 126",
      "Windows",
    ],
    [
      `Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${webkit} Chrome/126.0.0.0 Safari/537.36`,
      "Chrome 126",
      "ChromeOS",
    ],
    [
      `Mozilla/5.0 (Linux; Android 14; K) ${webkit} SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36`,
      "Samsung Internet 25",
      "Android",
    ],
    [
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
      "Safari 17",
      "macOS",
    ],
    [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
      "Safari 17",
      "iOS",
    ],
    [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/126.0.6478.54 Mobile/15E148 Safari/604.1",
      "Chrome 126",
      "iOS",
    ],
    ["curl/8.5.0", "curl", null],
    ["python-requests/2.32.3", "python-requests", null],
    ["node", "node", null],
    ["Mozilla/5.0", null, null],
    ["<script>alert(1)</script>", null, null],
    ["", null, null],
    [undefined, null, null],
  ])("%s", (header, browser, os) => expect(agentOf(header)).toEqual({ browser, os }))

  it("is short and plain, whatever is sent", () => {
    const part = fc.constantFrom(
      "Mozilla/5.0 ",
      "Firefox/",
      "Version/",
      " Safari/",
      "Chrome/9",
      "\0",
      "<b>",
      "a",
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary" }),
          fc.array(part).map((all) => all.join("")),
        ),
        (text) => {
          const { browser, os } = agentOf(text.repeat(50))
          expect(browser ?? "x").toMatch(/^[\w. -]{1,60}$/)
          expect(os ?? "x").toMatch(/^\w{1,10}$/)
        },
      ),
    )
  })
})
