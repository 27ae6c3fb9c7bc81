// The model asks for functions, this program runs them: node examples/clients/tools.js "What is the weather in Jakarta?"
import OpenAI from "openai"
import { connection } from "./connection.js"

const client = new OpenAI(connection())
const model = "svc-lyt"

const functions = {
  get_weather: ({ city }) => ({ city, degrees: 31, sky: "sunny" }),
}
const tools = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "Tells the weather of a city.",
      strict: true, // the arguments always fit the schema
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
    },
  },
]

const messages = [{ role: "user", content: process.argv[2] ?? "What is the weather in Jakarta?" }]
// the first answer must call; what follows the results may be text, or calls again
for (let tool_choice = "required", left = 5; left > 0; tool_choice = "auto", left--) {
  const { choices } = await client.chat.completions.create({ model, messages, tools, tool_choice, max_tokens: 300 })
  const [{ message, finish_reason }] = choices
  messages.push(message)
  if (finish_reason !== "tool_calls") {
    console.log(message.content)
    break
  }
  for (const call of message.tool_calls) {
    const result = functions[call.function.name](JSON.parse(call.function.arguments))
    console.log(`${call.function.name}(${call.function.arguments}) -> ${JSON.stringify(result)}`)
    messages.push({ role: "tool", tool_call_id: call.id, content: JSON.stringify(result) })
  }
}
