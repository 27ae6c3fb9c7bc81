/** The value of each series of Prometheus' text format, by `name{labels in alphabetical order}`. */
export const seriesOf = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text.split("\n").flatMap((line) => {
      const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      if (name === undefined) return []
      const sorted = labels.match(/\w+="[^"]*"/g)?.sort() ?? []
      return [[`${name}{${sorted.join(",")}}`, Number(value)] as const]
    }),
  )
