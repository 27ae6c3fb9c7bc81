import { databaseContract } from "../../testing/contracts/database.ts"
import { openTestDatabase } from "../../testing/postgres.ts"

databaseContract("PostgreSQL", async () => {
  const { database, openAgain, close } = await openTestDatabase()
  return { database, second: await openAgain(), close }
})
