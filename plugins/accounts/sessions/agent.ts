/** What a `User-Agent` says, in words for the owner of the session. */
export interface Agent {
  /** `Firefox 128`, `curl`; null: unknown. */
  readonly browser: string | null
  readonly os: string | null
}

const maxCharacters = 512

/** In this order: browsers name those that they are made from, too. */
const browsers: readonly (readonly [string, RegExp])[] = [
  ["Edge", /\bEdg(?:A|iOS)?\/(\d{1,4})/],
  ["Opera", /\bOPR\/(\d{1,4})/],
  ["Samsung Internet", /\bSamsungBrowser\/(\d{1,4})/],
  ["Firefox", /\b(?:Firefox|FxiOS)\/(\d{1,4})/],
  ["Chrome", /\b(?:HeadlessChrome|Chromium|Chrome|CriOS)\/(\d{1,4})/],
  ["Safari", /\bVersion\/(\d{1,4})[^ ]* (?:Mobile\/\w+ )?Safari\//],
]

const systems: readonly (readonly [string, RegExp])[] = [
  ["Android", /\bAndroid\b/],
  ["iOS", /\b(?:iPhone|iPad|iPod)\b/],
  ["Windows", /\bWindows\b/],
  ["ChromeOS", /\bCrOS\b/],
  ["macOS", /\bMac OS X\b|\bMacintosh\b/],
  ["Linux", /\bLinux\b/],
]

/** The program's own name, where it is no browser: `curl/8.5.0`, `python-requests/2.32`. */
const programOf = (text: string): string | null => {
  const name = /^[\w.-]{1,40}(?=[/ ]|$)/.exec(text)?.[0]
  return name === undefined || name === "Mozilla" ? null : name
}

const browserOf = (text: string): string | null => {
  for (const [name, pattern] of browsers) {
    const version = pattern.exec(text)?.[1]
    if (version !== undefined) return `${name} ${version}`
  }
  return programOf(text)
}

export const agentOf = (header: string | undefined): Agent => {
  const text = (header ?? "").slice(0, maxCharacters)
  return {
    browser: browserOf(text),
    os: systems.find(([, pattern]) => pattern.test(text))?.[0] ?? null,
  }
}
