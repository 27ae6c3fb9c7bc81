import { indented, python, shellQuoted } from "./chat-request.js"

/** The texts of a field with one a line; lines without text are none. */
export const linesOf = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")

export const numberField = (name, text) => (text ? { [name]: Number(text) } : {})

/** `images`: `{ uri }`, behind the texts. */
export const embeddingsBody = ({ model, input, dimensions }, images) => ({
  model,
  input: [...linesOf(input), ...images.map(({ uri }) => ({ type: "image", image_url: uri }))],
  ...numberField("dimensions", dimensions),
})

export const rerankBody = ({ model, query, documents, top_n: topN }) => ({
  model,
  query,
  documents: linesOf(documents),
  ...numberField("top_n", topN),
})

/** The fields of a transcription beside its file: segments have times only in this form of the answer. */
export const transcriptionFields = ({ model, language, prompt }) => ({
  model,
  ...(language && { language }),
  ...(prompt && { prompt }),
  response_format: "verbose_json",
})

export const curlOf = (address, body) => `curl ${address} \\
  -H "Authorization: Bearer $RAKIT_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${shellQuoted(JSON.stringify(body, null, 2))}`

export const javascriptClient = (base) => `import OpenAI from "openai"

const client = new OpenAI({ baseURL: "${base}", apiKey: process.env.RAKIT_API_KEY })`

export const pythonClient = (base) => `import os
from openai import OpenAI

client = OpenAI(base_url="${base}", api_key=os.environ["RAKIT_API_KEY"])`

const pythonArguments = (body) =>
  Object.entries(body)
    .map(([name, value]) => `    ${name}=${python(value, "    ")},`)
    .join("\n")

/** The call in three languages, by their names. */
export const embeddingsCode = (base, body) => ({
  curl: curlOf(`${base}/embeddings`, body),
  JavaScript: `${javascriptClient(base)}
const reply = await client.embeddings.create(${indented(body, "")})
console.log(reply.data.map(({ embedding }) => embedding.length))`,
  Python: `${pythonClient(base)}
reply = client.embeddings.create(
${pythonArguments(body)}
)
print([len(item.embedding) for item in reply.data])`,
})

/** OpenAI's clients have no rerank. */
export const rerankCode = (base, body) => ({
  curl: curlOf(`${base}/rerank`, body),
  JavaScript: `const reply = await fetch("${base}/rerank", {
  method: "POST",
  headers: {
    authorization: \`Bearer \${process.env.RAKIT_API_KEY}\`,
    "content-type": "application/json",
  },
  body: JSON.stringify(${indented(body, "  ")}),
})
console.log((await reply.json()).results)`,
  Python: `import os
import requests

reply = requests.post(
    "${base}/rerank",
    headers={"Authorization": f"Bearer {os.environ['RAKIT_API_KEY']}"},
    json=${python(body, "    ")},
)
print(reply.json()["results"])`,
})

/** `name`: the file's. curl reads `;` and `,` in the name of a file unless it is quoted. */
export const transcriptionCode = (base, { name, ...fields }) => {
  const quoted = `"${name.replace(/["\\]/g, "\\$&")}"`
  const forms = Object.entries(fields).map(
    ([field, value]) => ` \\\n  --form-string ${shellQuoted(`${field}=${value}`)}`,
  )
  return {
    curl: `curl ${base}/audio/transcriptions \\
  -H "Authorization: Bearer $RAKIT_API_KEY" \\
  -F ${shellQuoted(`file=@${quoted}`)}${forms.join("")}`,
    JavaScript: `import { createReadStream } from "node:fs"
${javascriptClient(base)}
const reply = await client.audio.transcriptions.create({
  file: createReadStream(${JSON.stringify(name)}),
${Object.entries(fields)
  .map(([field, value]) => `  ${field}: ${JSON.stringify(value)},`)
  .join("\n")}
})
console.log(reply.text)`,
    Python: `${pythonClient(base)}
reply = client.audio.transcriptions.create(
    file=open(${JSON.stringify(name)}, "rb"),
${pythonArguments(fields)}
)
print(reply.text)`,
  }
}
