import { sentencesOf } from "./passages.js"

const oneLine = (text) => text.replace(/\s+/g, " ")

const dot = (a, b) => a.reduce((sum, x, at) => sum + x * b[at], 0)

/** Returns the sentences nearest to a text in meaning, nearest first. */
const nearest = async (client, text, sentences, count) => {
  const { data } = await client.embeddings.create({
    model: "svc-embed",
    input: [text, ...sentences.map((sentence) => oneLine(sentence.text))],
  })
  const [wanted, ...vectors] = data.map(({ embedding }) => embedding)
  return sentences
    .map((sentence, at) => ({ ...sentence, score: dot(wanted, vectors[at]) }))
    .sort((a, b) => b.score - a.score)
    .slice(0, count)
}

const messagesOf = (question, passages) => [
  {
    role: "system",
    content:
      "Answer the question in one short sentence, from these passages alone. Where they do not hold the answer, say so.",
  },
  { role: "user", content: `${passages.join("\n")}\n\nQuestion: ${question}` },
]

/**
 * Searches the files and has the best passages answered from, piece by piece to `show`. Returns the
 * sentences that say what the answer says, with their places: they stand in the document word for
 * word, whatever the model made of them. None where nothing was found.
 */
export const answerFrom = async (client, question, file_ids, show) => {
  const { results } = await client.post("/retrieval", {
    body: { query: question, file_ids, top_k: 4, hybrid: true, rerank: true },
  })
  const sentences = sentencesOf(results).slice(0, 63) // a request embeds 64 texts
  if (sentences.length === 0) return []
  const relevant = await nearest(client, question, sentences, 6)
  const stream = await client.chat.completions.create({
    model: "svc-lyt",
    messages: messagesOf(
      question,
      relevant.map(({ text }) => oneLine(text)),
    ),
    temperature: 0,
    max_tokens: 60,
    stream: true,
  })
  let answer = ""
  for await (const { choices } of stream) {
    const piece = choices[0]?.delta.content ?? ""
    show(piece)
    answer += piece
  }
  return nearest(client, `${question} ${answer}`, relevant, 2)
}
