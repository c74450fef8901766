/** Part of a name that may differ: at a third, MAILER_URLPATHS and PROFILER_ENABLED found names of other subjects. */
const MISSPELT_PART = 1 / 4

/** Finds the known name with the smallest edit distance; undefined when it differs in too much for a slip. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const [closest] = known
    .map((each) => ({ name: each, distance: distance(each, name) }))
    .sort((a, b) => a.distance - b.distance)
  return closest && closest.distance <= Math.ceil(name.length * MISSPELT_PART) ? closest.name : undefined
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(substitution, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
