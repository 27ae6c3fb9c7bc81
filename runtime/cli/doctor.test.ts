import { expect, test } from "vitest"
import { problem } from "./doctor/finding.ts"
import { reportText } from "./doctor.ts"

test("a finding ends with one full stop, whether its words have one or not", () => {
  const text = reportText(
    [problem("model a", "it is cut. Pull it again.", "mend it."), problem("disk", "full", "buy.")],
    false,
  )
  expect(text).toMatch(/it is cut\. Pull it again\. Fix: mend it\.\n/)
  expect(text).toMatch(/full\. Fix: buy\.\n/)
})
