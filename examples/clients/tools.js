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
      parameters: {
        type: "object",
        properties: { city: { type: "string", maxLength: 60 } },
        required: ["city"],
        additionalProperties: false,
      },
    },
  },
]

const messages = [{ role: "user", content: process.argv[2] ?? "What is the weather in Jakarta?" }]
// the first answer must call, the last one must be text; in between the model chooses
for (const tool_choice of ["required", "auto", "auto", "none"]) {
  const { choices } = await client.chat.completions.create({
    model,
    messages,
    tools,
    tool_choice,
    max_tokens: 300,
  })
  const [{ message, finish_reason }] = choices
  messages.push(message)
  if (finish_reason !== "tool_calls") {
    // at max_tokens a call ends in the middle: it can't be run, and there is no text
    console.log(
      message.content ||
        (message.tool_calls ? "(the call was cut off at max_tokens)" : "(the model said nothing)"),
    )
    break
  }
  for (const call of message.tool_calls) {
    const result = functions[call.function.name](JSON.parse(call.function.arguments))
    console.log(`${call.function.name}(${call.function.arguments}) -> ${JSON.stringify(result)}`)
    messages.push({ role: "tool", tool_call_id: call.id, content: JSON.stringify(result) })
  }
}
