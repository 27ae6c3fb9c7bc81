import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { migrations } from "./migrations.ts"

const folder = join(import.meta.dirname, "sql")
const digestOf = (file: string): string =>
  createHash("sha256")
    .update(readFileSync(join(folder, file)))
    .digest("hex")
    .slice(0, 12)

/** File -> the migration that installs it, with the digest of what that installed last. */
const installed: Readonly<Record<string, readonly [keyof typeof migrations, string]>> = {
  "adjust.sql": ["003-functions", "017ce403c6da"],
  "admit.sql": ["010-spare-calls", "b715ad7494ed"],
  "call-outcomes.sql": ["007-call-outcomes", "96a2021e92c5"],
  "calendar.sql": ["003-functions", "5b577e9cbe69"],
  "close-late.sql": ["007-call-outcomes", "7ae2be3593a0"],
  "close.sql": ["010-spare-calls", "a927b80bc653"],
  "constraints.sql": ["009-fewer-checks", "b5e9f4e20b8c"],
  "lock.sql": ["003-functions", "0d659d024bd6"],
  "refusals.sql": ["004-refusals", "20fd7e523eb1"],
  "refused-calls.sql": ["006-refused-calls", "f27f3f234236"],
  "settle.sql": ["010-spare-calls", "da6358dc3d4b"],
  "spares.sql": ["010-spare-calls", "08b2d244a1a3"],
  "tables.sql": ["001-ledger", "bc08b853f8ff"],
  "types.sql": ["001-ledger", "42273306be33"],
  "uncount.sql": ["010-spare-calls", "b0e84cf875c0"],
}

it.each(readdirSync(folder))(
  "databases that have run their migrations have %s as it is",
  (file) => {
    const [migration, digest] = installed[file] ?? []
    expect(Object.keys(migrations)).toContain(migration)
    expect(
      digestOf(file),
      `${file} changed: add a migration that installs it again, and write its name and digest here`,
    ).toBe(digest)
  },
)
