import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import OpenAI from "openai"
import pg from "pg"
import { expect } from "vitest"
import { addAccount, askDashboard } from "../../../testing/dashboard-client.ts"
import { type Platform, startPlatform } from "../../../testing/platform.ts"

const blobsOf = ({ env }: Platform): readonly string[] => {
  const folder = join(env.RAKIT_DATA!, "blobs")
  return (existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [])
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
}

/**
 * Starts the whole server with a real database and a real disk, and official clients of three
 * tenants.
 */
export const openFilesPlatform = async () => {
  const platform = await startPlatform()
  const { email, password, api_key } = platform.credentials
  const clientOf = (apiKey: string) =>
    new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
  const { token } = await askDashboard(platform.url, "/dashboard/login", "", { email, password })
  const live = clientOf(api_key)
  const test = clientOf(
    (await askDashboard(platform.url, "/dashboard/keys", token, { name: "sandbox", test: true }))
      .key,
  )
  const other = clientOf((await addAccount(platform.url, token)).key)
  const db = new pg.Client({ connectionString: platform.env.DATABASE_URL })
  await db.connect()
  const blobs = () => blobsOf(platform)
  const nothingLeft = async () => {
    expect(blobs()).toEqual([])
    for (const table of ["files_incoming", "files_trash", "files_part"])
      expect([table, (await db.query(`SELECT * FROM ${table}`)).rows]).toEqual([table, []])
    expect(
      (await db.query("SELECT sum(bytes) AS bytes, sum(files) AS files FROM files_usage")).rows,
    ).toEqual([{ bytes: "0", files: "0" }])
  }
  const raw = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
    fetch(`${platform.url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${api_key}`, ...headers },
    })
  const deleteAll = async () => {
    for (const { id } of (await live.files.list({ limit: 100 })).data) await live.files.delete(id)
  }
  const close = async () => {
    await db.end()
    await platform.close()
  }
  return { live, test, other, db, raw, blobs, nothingLeft, deleteAll, close }
}
export type FilesPlatform = Awaited<ReturnType<typeof openFilesPlatform>>
