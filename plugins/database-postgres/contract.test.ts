import { databaseContract } from "../../core/testing/database-contract.ts"
import { openTestDatabase } from "../../runtime/testing/test-database.ts"

databaseContract("PostgreSQL", async () => {
  const { database, openAgain, close } = await openTestDatabase()
  return { database, second: await openAgain(), close }
})
