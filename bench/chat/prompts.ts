const questions = [
  "Explain to a child why the sky is blue and why sunsets are red.",
  "Write a short story about a fisherman who finds a letter in a bottle.",
  "What should I consider when I buy a used bicycle for a daily commute?",
  "Give me a plan for a weekend in a city that I have never visited.",
  "How does a refrigerator keep food cold, and where does the heat go?",
  "Describe the life of a bee from the egg to its last flight.",
  "Which habits help people to fall asleep faster, and which hurt?",
  "Compare the advantages of trains and planes for a trip of 500 kilometres.",
  "Tell me about the history of paper, from its beginnings to today.",
  "What makes bread rise, and what goes wrong when it does not?",
  "Write a polite letter that asks a neighbour to keep the music down.",
  "Why do leaves change their colours in autumn?",
  "How would you teach someone to swim who is afraid of water?",
  "Describe a market in the morning, with its sounds and smells.",
  "What are the steps of making tea properly, and why do they matter?",
  "Explain how a bicycle stays upright while it moves.",
]

const rules =
  "You are a helpful assistant. Answer in plain words, in whole sentences, and give an example where it helps the reader to understand. Do not repeat the question."

/** Different conversations of some 64 tokens. */
export const chatPrompts = (count: number): readonly string[] =>
  Array.from(
    { length: count },
    (_, i) =>
      `<|im_start|>system\n${rules}<|im_end|>\n<|im_start|>user\n${questions[i % questions.length]}<|im_end|>\n<|im_start|>assistant\n`,
  )

/** Asks to copy a text, where prompt lookup helps. */
export const copyPrompt = (): string => {
  const lines = Array.from(
    { length: 8 },
    (_, i) =>
      `export const field${i}Name = readField("field${i}", { required: ${i % 2 === 0}, maxLength: ${i * 10 + 20} })`,
  )
  return `<|im_start|>user\nRepeat this code exactly:\n${lines.join("\n")}<|im_end|>\n<|im_start|>assistant\n${lines[0]}\n`
}

/** A text long enough to be cut to any measured length. */
export const longText = (): string =>
  Array.from(
    { length: 400 },
    (_, i) =>
      `Entry ${i * 37} of the log: the boat left harbour ${(i * 7) % 60} minutes late, carried ${(i * 13) % 97} crates, and met wind from the ${["north", "east", "south", "west"][i % 4]}.`,
  ).join(" ")
