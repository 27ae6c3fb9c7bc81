import { readFileSync } from "node:fs"

/** Address and key: from the environment, else from the credentials that the first boot wrote. */
export const connection = () => {
  const { RAKIT_BASE_URL, RAKIT_API_KEY, RAKIT_DATA = ".rakit" } = process.env
  if (RAKIT_BASE_URL && RAKIT_API_KEY) return { baseURL: RAKIT_BASE_URL, apiKey: RAKIT_API_KEY }
  const { base_url, api_key } = JSON.parse(readFileSync(`${RAKIT_DATA}/credentials.json`, "utf8"))
  return { baseURL: RAKIT_BASE_URL ?? base_url, apiKey: RAKIT_API_KEY ?? api_key }
}
