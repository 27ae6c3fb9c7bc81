import { readFileSync } from "node:fs"

const read = (up: string): string | undefined => {
  try {
    return (
      JSON.parse(readFileSync(new URL(`${up}/package.json`, import.meta.url), "utf8")) as {
        version?: string
      }
    ).version
  } catch {
    return undefined
  }
}

/** package.json is one level up from the sources, two from `dist/`. */
export const version: string = read("..") ?? read("../..") ?? "0.0.0"
