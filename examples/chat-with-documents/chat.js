// Asks documents: node examples/chat-with-documents/chat.js handbook.pdf "How long is the warranty?"
import { existsSync } from "node:fs"
import { stdin, stdout } from "node:process"
import { createInterface } from "node:readline"
import OpenAI from "openai"
import { connection } from "../clients/connection.js"
import { answerFrom } from "./answer.js"
import { addDocument } from "./documents.js"

const client = new OpenAI(connection())
const paths = process.argv.slice(2).filter((argument) => existsSync(argument))
const question = process.argv
  .slice(2)
  .filter((argument) => !existsSync(argument))
  .join(" ")
if (paths.length === 0) {
  console.error('node chat.js FILE... ["a question"]')
  process.exit(2)
}

const names = new Map()
for (const path of paths) {
  const file = await addDocument(client, path, console.error).catch((error) => {
    console.error(error.message)
    process.exit(1)
  })
  names.set(file.id, file.filename)
}

const placeOf = ({ file_id, page, start, end, score }) => {
  const place = page === undefined ? "" : `page ${page}, `
  return `${names.get(file_id)}, ${place}characters ${start} to ${end} (${score.toFixed(2)})`
}
const reply = async (asked) => {
  const show = (piece) => stdout.write(piece)
  const quotes = await answerFrom(client, asked, [...names.keys()], show)
  console.log(quotes.length === 0 ? "Nothing was found." : "")
  for (const quote of quotes)
    console.log(`  "${quote.text.replace(/\s+/g, " ")}"\n    ${placeOf(quote)}`)
}

if (question) await reply(question)
else {
  stdout.write("> ")
  for await (const line of createInterface({ input: stdin })) {
    if (line.trim() !== "") await reply(line)
    stdout.write("> ")
  }
}
