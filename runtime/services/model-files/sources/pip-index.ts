import { homedir } from "node:os"
import { join } from "node:path"
import type { Env } from "../context.ts"
import { parseIni, readConfigFile } from "./config-file.ts"

const publicIndex = "https://pypi.org/simple"

/** As pip itself loads them: the later wins (pip documentation, "Configuration"). */
const configFiles = (env: Env): readonly string[] => {
  const home = env.HOME ?? homedir()
  const named = env.PIP_CONFIG_FILE
  if (named === "/dev/null") return []
  const user = [
    join(home, ".pip", "pip.conf"),
    join(env.XDG_CONFIG_HOME ?? join(home, ".config"), "pip", "pip.conf"),
  ]
  const environment = env.VIRTUAL_ENV ? [join(env.VIRTUAL_ENV, "pip.conf")] : []
  return ["/etc/pip.conf", ...user, ...environment, ...(named ? [named] : [])]
}

/** The simple index that pip would ask here, without a slash at the end. May hold a user and password. */
export const pipIndex = async (env: Env): Promise<string> => {
  let index = env.PIP_INDEX_URL
  if (!index) {
    for (const path of configFiles(env)) {
      const sections = parseIni(await readConfigFile(path))
      index =
        sections.get("install")?.get("index-url") ??
        sections.get("global")?.get("index-url") ??
        index
    }
  }
  return (index || publicIndex).replace(/\/+$/, "")
}
