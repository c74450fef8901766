/** A metric in Prometheus' form; its labels exclude `le` and those that the exporter adds to all. */
export interface DocumentedMetric {
  name: string
  type: string
  labels: string[]
}

/** Reads the metrics of a page's table between its `<!-- metrics -->` marks, in alphabetical order. */
export function readMetricsTable(readme: string): DocumentedMetric[] {
  const [, table = ''] = /<!-- metrics -->\n(.*?)<!-- end metrics -->/s.exec(readme) ?? []
  return table
    .split('\n')
    .slice(2)
    .filter(Boolean)
    .map((row) => {
      const [, name = '', type = '', labels = ''] = row.split('|').map((cell) => cell.trim())
      return { name: name.replaceAll('`', ''), type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, l]) => l ?? '') }
    })
    .map((metric) => ({ ...metric, labels: metric.labels.sort() }))
    .sort(byName)
}

/** Reads the metrics of a scrape, except `target_info`, in alphabetical order. */
export function readScrape(figures: string): DocumentedMetric[] {
  const types = [...figures.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => ({ name, type }))
  return types
    .filter(({ name }) => name !== 'target_info')
    .map(({ name, type }) => {
      const series = new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm')
      const labels = [...figures.matchAll(series)].flatMap(([, all = '']) =>
        [...all.matchAll(/(\w+)="/g)].map(([, label = '']) => label),
      )
      return { name, type, labels: [...new Set(labels)].filter((label) => !ADDED.test(label)).sort() }
    })
    .sort(byName)
}

/** The figure of the first series whose text begins so; undefined if there is none. */
export const readingOf = (figures: string, name: string) => {
  const line = figures.split('\n').find((candidate) => candidate.startsWith(name))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}

const ADDED = /^(le|otel_scope_.*)$/

const byName = (a: DocumentedMetric, b: DocumentedMetric) => (a.name < b.name ? -1 : 1)
