import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { displayRupiah, rupiahNumber } from "../../core/index.ts"
import { webModule } from "./testing/web-module.ts"

const { takeMailToken, routeOf } = await webModule("route.js")
const { seriesOf, stackOf } = await webModule("parts/chart-data.js")
const { eventsOf } = await webModule("events.js")
const { day, daysBetween, duration, exactMoney, hoursBetween, money } = await webModule("format.js")
const { limitsOf } = await webModule("views/key-form.js")

describe("a mailed link", () => {
  const open = (hash: string) => {
    const bar: string[] = []
    const taken = takeMailToken(
      { pathname: "/dashboard", search: "", hash },
      { replaceState: (_: null, __: string, address: string) => void bar.push(address) },
    )
    return { taken, bar }
  }

  it.each([
    ["#verify=a.b-c_d", "verify", "a.b-c_d"],
    ["#reset=a%2Bb", "reset", "a+b"],
    ["#reset=100%", "reset", "100%"],
  ])("%s gives its token and leaves the address bar", (hash, purpose, token) => {
    expect(open(hash)).toEqual({ taken: { purpose, token }, bar: [`/dashboard#${purpose}`] })
  })

  it.each(["", "#", "#verify", "#verify=", "#keys", "#xverify=a", "#reset"])(
    "%s is none",
    (hash) => {
      expect(open(hash)).toEqual({ taken: undefined, bar: [] })
    },
  )

  it("a route never holds more than a name", () => {
    fc.assert(fc.property(fc.string(), (text) => /^[a-z-]*$/.test(routeOf(`#${text}`))))
    expect(routeOf("#sign-in?x=1")).toBe("sign-in")
  })
})

describe("the chart", () => {
  const days = ["2026-01-01", "2026-01-02", "2026-01-03"]
  const rows = fc.array(
    fc.record({
      day: fc.constantFrom(...days),
      model: fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"),
      cost_idr: fc.integer({ min: 0, max: 1000 }),
    }),
    {
      maxLength: 60,
    },
  )
  const labelOf = ({ model }: { model: string }) => model
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0)

  it("loses nothing, has at most six series, and its last sums are the days'", () => {
    fc.assert(
      fc.property(rows, (all) => {
        const series: { label: string; values: number[] }[] = seriesOf(all, days, labelOf, "others")
        expect(series.length).toBeLessThanOrEqual(6)
        expect(new Set(series.map(({ label }) => label)).size).toBe(series.length)
        const stack: number[][] = stackOf(series)
        for (const [at, day] of days.entries())
          expect(stack.at(-1)?.[at] ?? 0).toBe(
            sum(all.filter((row) => row.day === day).map(({ cost_idr }) => cost_idr)),
          )
        for (const [at, sums] of stack.entries())
          if (at > 0)
            for (const [index, value] of sums.entries())
              expect(value).toBeGreaterThanOrEqual(stack[at - 1]![index]!)
      }),
    )
  })

  it("puts the largest first and what is small together", () => {
    const all = [..."abcdefgh"].map((model, index) => ({
      day: days[0],
      model,
      cost_idr: 100 - index,
    }))
    expect(
      seriesOf(all, days, labelOf, "others").map(({ label }: { label: string }) => label),
    ).toEqual(["a", "b", "c", "d", "e", "others"])
  })

  it("has all days", () => {
    expect(daysBetween("2024-02-27", "2024-03-01")).toEqual([
      "2024-02-27",
      "2024-02-28",
      "2024-02-29",
      "2024-03-01",
    ])
    expect(daysBetween("2024-03-01", "2024-02-27")).toEqual([])
  })
})

it("events come whole, however the bytes are cut", async () => {
  const events = [{ n: 1, text: "a\u00e9\u{1f600}" }, { n: 2 }, { n: 3 }]
  const bytes = Buffer.from(
    `: ping\n\n${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`,
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 6 }), async (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      const body = new ReadableStream({
        start: (controller) => {
          for (const [index, from] of at.slice(0, -1).entries())
            controller.enqueue(new Uint8Array(bytes.subarray(from, at[index + 1])))
          controller.close()
        },
      })
      const seen: unknown[] = []
      for await (const event of eventsOf(body)) seen.push(event)
      expect(seen).toEqual(events)
    }),
  )
})

it.each([
  ["0", "Rp 0", "Rp 0"],
  ["50000", "Rp 50,000", "Rp 50.000"],
  ["9231.499999", "Rp 9,231", "Rp 9.231"],
  ["-1234.5", "-Rp 1,235", "-Rp 1.235"],
  ["750", "Rp 750.00", "Rp 750,00"],
  ["0.024", "Rp 0.0240", "Rp 0,0240"],
  ["0.000012", "Rp 0.000012", "Rp 0,000012"],
])("%s rupiah has decimals by its size, in the reader's form", (text, english, indonesian) => {
  const shown = ["en", "id"].map((language) => money(Number(text), language))
  expect(shown.map((one) => one.replaceAll("\u00a0", " "))).toEqual([english, indonesian])
})

it("the command line writes amounts as the English page does", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(10n ** 13n), max: 10n ** 13n }),
      (micros) =>
        displayRupiah(micros) === money(rupiahNumber(micros), "en").replaceAll("\u00a0", " "),
    ),
  )
})

it("an exact amount has all its millionths", () => {
  expect(
    ["50000", "0.000001", "-1234.5", "0.024"].map((text) =>
      exactMoney(Number(text), "id").replaceAll("\u00a0", " "),
    ),
  ).toEqual(["Rp 50.000", "Rp 0,000001", "-Rp 1.234,5", "Rp 0,024"])
})

it("limits that are left empty are not sent", () => {
  expect(
    limitsOf({
      ...{ "limits.rpm": "5", "limits.rpd": " ", "limits.monthly_cap_idr": "0.5" },
      ...{ "limits.body_mb": "2", name: "x" },
    }),
  ).toEqual({ rpm: 5, monthly_cap_idr: 0.5, body_mb: 2 })
})

it.each([
  [0.84, "0.8 ms", "0,8 ms"],
  [292.4, "292 ms", "292 ms"],
  [1_250, "1.3 s", "1,3 s"],
  [61_000, "61 s", "61 s"],
])("%s ms are written shortly", (ms, english, indonesian) => {
  expect(["en", "id"].map((language) => duration(ms, language))).toEqual([english, indonesian])
})

it("hours of days are steps of a chart, too", () => {
  const hours = hoursBetween("2026-01-31", "2026-02-01")
  expect([hours.length, hours[5], hours.at(-1)]).toEqual([
    48,
    "2026-01-31T05:00Z",
    "2026-02-01T23:00Z",
  ])
  expect(day(hours[5], "en")).toMatch(/31 Jan.*05:00/)
  expect(day("2026-01-31", "en")).toBe("31 Jan")
})
