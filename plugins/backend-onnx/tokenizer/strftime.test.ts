import { expect, test } from "vitest"
import { strftime } from "./strftime.ts"

const all = "%A %a %B %b %h %d %e %j %m %y %Y %C %G %V %U %W %u %w|%H %I %k %l %M %S %p %f|%z%Z%%"

// what Python's strftime writes on Linux
test.each([
  [
    new Date(2026, 10, 28, 13, 5, 9, 7),
    "Saturday Sat November Nov Nov 28 28 332 11 26 2026 20 2026 48 47 47 6 6|13 01 13  1 05 09 PM 007000|%",
  ],
  [
    new Date(2027, 0, 3, 0, 0, 0),
    "Sunday Sun January Jan Jan 03  3 003 01 27 2027 20 2026 53 01 00 7 0|00 12  0 12 00 00 AM 000000|%",
  ],
  [
    new Date(2024, 11, 30, 12, 59, 59),
    "Monday Mon December Dec Dec 30 30 365 12 24 2024 20 2025 01 52 53 1 1|12 12 12 12 59 59 PM 000000|%",
  ],
])("all directives of %s", (date, text) => {
  expect(strftime(date, all)).toBe(text)
})

test("directives together, without zeros, and unknown ones", () => {
  const date = new Date(2026, 2, 5, 4, 3, 2)
  expect(strftime(date, "%F|%D|%T|%R|%r|%c|%x %X")).toBe(
    "2026-03-05|03/05/26|04:03:02|04:03|04:03:02 AM|Thu Mar  5 04:03:02 2026|03/05/26 04:03:02",
  )
  expect(strftime(date, "%-d %-m %-H %-I %-M %-j %-y, %n%t, %Q %")).toBe(
    "5 3 4 4 3 64 26, \n\t, %Q %",
  )
})
