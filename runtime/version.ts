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

const sources = (): string => {
  try {
    return `+${readFileSync(new URL("./sources.sha256", import.meta.url), "utf8").slice(0, 12)}`
  } catch {
    return ""
  }
}

/**
 * The version with the sources that were compiled (`0.1.0+3f2a91c07b5e`): commits between two
 * releases may answer differently. Sources that run by themselves have the version alone.
 */
export const buildVersion: string = version + sources()
