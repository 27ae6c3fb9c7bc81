/** A text, the schema of what is to be read from it, and the only right document. */
export interface FieldTask {
  readonly text: string
  readonly schema: Readonly<Record<string, unknown>>
  readonly document: Readonly<Record<string, string | number | boolean>>
}

type Field = Readonly<Record<string, unknown>>
type Row = readonly (string | number | boolean)[]

/** A kind of task: what the text says of the fields, which stand in `{}`, in other words. */
interface Kind {
  readonly template: string
  readonly fields: Readonly<Record<string, Field>>
  readonly rows: readonly Row[]
}

const text = (description: string): Field => ({ type: "string", description })
const whole = (description: string): Field => ({ type: "integer", description })
const choice = (...values: readonly string[]): Field => ({ enum: values })

const kinds: readonly Kind[] = [
  {
    template: "Hi, this is {0} from {1}. You can reach me at {2} any time.",
    fields: {
      name: text("first name of the person"),
      city: text("where the person is"),
      phone: text("telephone number, as written"),
    },
    rows: [
      ["Rina", "Bandung", "0812-345-001"],
      ["Budi", "Medan", "0813-220-417"],
      ["Clara", "Lisbon", "555-0142"],
      ["Omar", "Cairo", "555-0177"],
      ["Yuki", "Osaka", "06-555-210"],
      ["Anna", "Vienna", "01-555-980"],
      ["Diego", "Lima", "555-0119"],
      ["Sari", "Solo", "0815-777-230"],
      ["Peter", "Boston", "617-555-018"],
      ["Ines", "Porto", "22-555-046"],
    ],
  },
  {
    template: "Please send {1} {0} to our office. We agreed on {2} dollars for each.",
    fields: {
      product: text("what is ordered, in the plural"),
      quantity: whole("how many"),
      unit_price: { type: "number", description: "in dollars" },
    },
    rows: [
      ["chairs", 12, 49.5],
      ["lamps", 7, 18],
      ["tables", 3, 220],
      ["pens", 200, 0.5],
      ["screens", 5, 310],
      ["cables", 40, 4.25],
      ["mugs", 36, 6],
      ["clocks", 9, 27.5],
      ["plants", 15, 11],
      ["boards", 2, 85],
    ],
  },
  {
    template: "The {0} takes place on {1} in room {2}.",
    fields: {
      title: text("name of the event"),
      date: { type: "string", format: "date" },
      room: text("the room, without the word room"),
    },
    rows: [
      ["budget review", "2026-03-14", "B12"],
      ["spring concert", "2026-04-02", "A1"],
      ["chess final", "2026-05-21", "C7"],
      ["safety training", "2026-06-30", "D4"],
      ["book fair", "2026-07-11", "E9"],
      ["team lunch", "2026-08-05", "F2"],
      ["open day", "2026-09-19", "G5"],
      ["job talk", "2026-10-27", "H3"],
      ["year end party", "2026-12-18", "K8"],
      ["blood drive", "2026-02-09", "L6"],
    ],
  },
  {
    template: "{2} I gave the {0} {1} out of 5 stars.",
    fields: {
      product: text("what is judged"),
      rating: { type: "integer", minimum: 1, maximum: 5 },
      sentiment: choice("positive", "negative"),
    },
    rows: [
      ["kettle", 5, "positive"],
      ["toaster", 1, "negative"],
      ["radio", 4, "positive"],
      ["blender", 2, "negative"],
      ["camera", 5, "positive"],
      ["printer", 1, "negative"],
      ["heater", 4, "positive"],
      ["mixer", 2, "negative"],
      ["speaker", 5, "positive"],
      ["scale", 1, "negative"],
    ],
  },
  {
    template: "Flight {2} leaves {0} at {3} and lands in {1} in the evening.",
    fields: {
      origin: text("where it departs"),
      destination: text("where it arrives"),
      flight_number: text("letters and digits"),
      departure: text("time as HH:MM"),
    },
    rows: [
      ["Jakarta", "Tokyo", "GA874", "09:15"],
      ["Paris", "Rome", "AF1204", "14:40"],
      ["Delhi", "Dubai", "AI995", "16:05"],
      ["Madrid", "London", "IB3166", "12:30"],
      ["Oslo", "Berlin", "DY1104", "15:20"],
      ["Seoul", "Hanoi", "KE441", "13:55"],
      ["Sydney", "Perth", "QF581", "11:10"],
      ["Chicago", "Denver", "UA529", "17:45"],
      ["Nairobi", "Accra", "KQ508", "10:25"],
      ["Athens", "Prague", "OK769", "18:00"],
    ],
  },
  {
    template: "{1} wrote {0} in {2}, and it is still read today.",
    fields: {
      title: text("name of the book"),
      author: text("full name"),
      year: whole("when it was written"),
    },
    rows: [
      ["Emma", "Jane Austen", 1815],
      ["Dracula", "Bram Stoker", 1897],
      ["Walden", "Henry Thoreau", 1854],
      ["Ulysses", "James Joyce", 1922],
      ["Kim", "Rudyard Kipling", 1901],
      ["Middlemarch", "George Eliot", 1871],
      ["Frankenstein", "Mary Shelley", 1818],
      ["Nostromo", "Joseph Conrad", 1904],
      ["Orlando", "Virginia Woolf", 1928],
      ["Ivanhoe", "Walter Scott", 1820],
    ],
  },
  {
    template: "Our {1} {0} is {2} years old and {3} vaccinated.",
    fields: {
      name: text("how the animal is called"),
      species: choice("dog", "cat", "rabbit"),
      age: whole("in years"),
      vaccinated: { type: "boolean" },
    },
    rows: [
      ["Milo", "dog", 4, true],
      ["Luna", "cat", 2, false],
      ["Hoppy", "rabbit", 1, true],
      ["Rex", "dog", 9, false],
      ["Tiger", "cat", 7, true],
      ["Snow", "rabbit", 3, false],
      ["Bella", "dog", 5, true],
      ["Felix", "cat", 11, false],
      ["Clover", "rabbit", 2, true],
      ["Max", "dog", 6, false],
    ],
  },
  {
    template: "Ticket {0} was given to {2}. It is of {1} priority.",
    fields: {
      id: text("of the ticket, without the word ticket"),
      priority: choice("low", "medium", "high"),
      assignee: text("who works on it"),
    },
    rows: [
      ["T-104", "high", "Maya"],
      ["T-221", "low", "Jonas"],
      ["T-317", "medium", "Priya"],
      ["T-402", "high", "Lucas"],
      ["T-555", "low", "Elena"],
      ["T-618", "medium", "Tom"],
      ["T-733", "high", "Aiko"],
      ["T-841", "low", "Sofia"],
      ["T-909", "medium", "Karl"],
      ["T-990", "high", "Nadia"],
    ],
  },
  {
    template: "In {0} it is {1} degrees now, and {2}.",
    fields: {
      city: text("where it was measured"),
      temperature: { type: "number", description: "in degrees" },
      sky: choice("sunny", "cloudy", "rainy"),
    },
    rows: [
      ["Bogor", 24, "rainy"],
      ["Helsinki", -3, "cloudy"],
      ["Cairo", 38, "sunny"],
      ["Dublin", 11, "rainy"],
      ["Lagos", 31, "sunny"],
      ["Zurich", 5.5, "cloudy"],
      ["Havana", 29, "sunny"],
      ["Bergen", 8, "rainy"],
      ["Quito", 16, "cloudy"],
      ["Surabaya", 33, "sunny"],
    ],
  },
  {
    template: "{0} paid {1} euros for the invoice {2} by {3}.",
    fields: {
      customer: text("name of the company"),
      amount: { type: "number", description: "in euros" },
      invoice: text("number of the invoice"),
      method: choice("card", "cash", "transfer"),
    },
    rows: [
      ["Acme", 250, "INV-17", "card"],
      ["Borealis", 99.9, "INV-23", "cash"],
      ["Cobalt", 1200, "INV-31", "transfer"],
      ["Delphi", 47, "INV-44", "card"],
      ["Everest", 315.5, "INV-58", "transfer"],
      ["Fjord", 80, "INV-62", "cash"],
      ["Granite", 640, "INV-75", "card"],
      ["Helios", 12.75, "INV-86", "cash"],
      ["Indigo", 2040, "INV-91", "transfer"],
      ["Juniper", 505, "INV-99", "card"],
    ],
  },
]

/** How a value stands in the text. */
const worded = (value: string | number | boolean): string => {
  if (value === "positive") return "It works very well and I love it."
  if (value === "negative") return "It broke after a day and I want my money back."
  return typeof value === "boolean" ? (value ? "is" : "is not") : String(value)
}

export const fieldTasks: readonly FieldTask[] = kinds.flatMap(({ template, fields, rows }) => {
  const names = Object.keys(fields)
  const schema = {
    type: "object",
    properties: fields,
    required: names,
    additionalProperties: false,
  }
  return rows.map((row) => ({
    text: template.replace(/\{(\d)\}/g, (_, index) => worded(row[Number(index)]!)),
    schema,
    document: Object.fromEntries(names.map((name, index) => [name, row[index]!])),
  }))
})
