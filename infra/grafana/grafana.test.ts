import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { readMetricsTable } from '../../packages/common/src/testing/telemetry/metrics-table.ts'

const read = (path: string) => readFile(new URL(path, import.meta.url), 'utf8')

/** Labels and series that Prometheus adds. */
const OF_THE_SCRAPE = ['job', 'instance', 'namespace']
const OF_PROMETHEUS = { up: [], ALERTS: ['alertname', 'alertstate', 'severity', 'service'] }

interface Panel {
  id: number
  type: string
  title: string
  description?: string
  fieldConfig?: { defaults: { unit?: string } }
  gridPos: { x: number; y: number; w: number; h: number }
  targets?: { expr: string; legendFormat: string; refId: string }[]
}
interface Dashboard {
  uid: string
  title: string
  schemaVersion: number
  panels: Panel[]
  templating: { list: { name: string; type: string; query: string | { query: string } }[] }
  annotations: { list: { expr?: string }[] }
}
interface Rule {
  alert: string
  expr: string
  for?: string
  labels: Record<string, string>
  annotations: Record<string, string>
}

/** Labels of each documented series of a service. */
async function documentedSeries(service: string): Promise<Map<string, string[]>> {
  const documented = readMetricsTable(await read(`../../docs/reference/${service}/metrics.md`))
  const series = new Map<string, string[]>(Object.entries(OF_PROMETHEUS))
  series.set('target_info', [`${service}_version`, 'service_name', 'service_instance_id'])
  for (const { name, type, labels } of documented) {
    const own = [...labels, 'otel_scope_name']
    if (type !== 'histogram') series.set(name, own)
    else {
      for (const part of ['_sum', '_count']) series.set(name + part, own)
      series.set(`${name}_bucket`, [...own, 'le'])
    }
  }
  return series
}

/** Finds undocumented metrics and labels in an expression. */
function findUnknown(expression: string, series: Map<string, string[]>): string[] {
  const { selectors, groupings } = readExpression(expression)
  const labelsOf = (name: string) => [...(series.get(name) ?? []), ...OF_THE_SCRAPE]
  const all = selectors.flatMap(({ name }) => labelsOf(name))
  return [
    ...selectors.filter(({ name }) => !series.has(name)).map(({ name }) => `metric ${name}`),
    ...selectors.flatMap(({ name, labels }) =>
      labels.filter((label) => !labelsOf(name).includes(label)).map((label) => `label ${label} of ${name}`),
    ),
    ...groupings.filter((label) => !all.includes(label)).map((label) => `label ${label} to group by`),
  ]
}

describe.each(['auth', 'media'])('%s', async (service) => {
  const board = JSON.parse(await read(`${service}.json`)) as Dashboard
  const rules = (parse(await read(`${service}.rules.yaml`)) as { groups: { rules: Rule[] }[] }).groups.flatMap(
    (group) => group.rules,
  )
  const series = await documentedSeries(service)
  const shown = board.panels.filter(({ type }) => type !== 'row')

  test('every panel queries documented metrics and labels', () => {
    const asked = shown.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    const noted = board.annotations.list.flatMap(({ expr }) => expr ?? [])
    const variables = board.templating.list.flatMap(({ query }) =>
      typeof query === 'string' ? [] : (/^label_values\((.*), (\w+)\)$/.exec(query.query)?.[1] ?? `? ${query.query}`),
    )
    for (const expr of [...asked, ...noted, ...variables]) expect([expr, findUnknown(expr, series)]).toEqual([expr, []])
  })

  test('the dashboard shows every metric of the service', () => {
    const selectors = shown.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => readExpression(expr).selectors))
    const asked = selectors.map(({ name }) => name.replace(/_(bucket|count|sum)$/, ''))
    const metrics = [...series.keys()].filter((name) => !Object.hasOwn(OF_PROMETHEUS, name))
    for (const name of metrics) expect(asked).toContain(name.replace(/_(bucket|count|sum)$/, ''))
  })

  test('panels have a unique id, title, description, unit and targets, and do not overlap', () => {
    const ids = board.panels.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const taken = new Set<string>()
    for (const { title, description, fieldConfig, targets = [], gridPos } of shown) {
      const facts = { title, description, unit: fieldConfig?.defaults.unit, targets: targets.length > 0 }
      expect(facts).toEqual({ title: filled, description: filled, unit: filled, targets: true })
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length)
      const { x, y, w, h } = gridPos
      expect(x + w).toBeLessThanOrEqual(24)
      for (let cell = 0; cell < w * h; cell++) {
        const place = `${x + (cell % w)},${y + Math.floor(cell / w)}`
        expect([title, taken.has(place)]).toEqual([title, false])
        taken.add(place)
      }
    }
  })

  test('a legend names only labels that its query keeps', () => {
    for (const { expr, legendFormat } of shown.flatMap(({ targets = [] }) => targets)) {
      const { selectors, groupings } = readExpression(expr)
      const kept = /\b(sum|min|max|count)\b/.test(expr)
        ? groupings
        : selectors.flatMap(({ name }) => [...(series.get(name) ?? []), ...OF_THE_SCRAPE])
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        expect([expr, kept]).toEqual([expr, expect.arrayContaining([label])])
    }
  })

  test('data source, namespace, job and instance are variables of every query', () => {
    expect(board.templating.list.map(({ name }) => name)).toEqual(['datasource', 'namespace', 'job', 'instance'])
    expect(JSON.stringify(board)).not.toMatch(/"uid": ?"(?!\$\{datasource\}|-- Grafana --|(auth|media)-service)/)
    for (const { expr } of shown.flatMap(({ targets = [] }) => targets)) {
      for (const { labels } of readExpression(expr).selectors) {
        expect([expr, labels]).toEqual([expr, expect.arrayContaining(['namespace', 'job', 'instance'])])
      }
    }
  })

  test('job metrics, equal in every process, are counted once', () => {
    const asked = shown.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    const ofJobs = asked.filter((expr) => expr.includes(`${service}_queue_jobs{`))
    expect(ofJobs.length).toBeGreaterThan(1)
    for (const expr of ofJobs) expect(expr).toMatch(/^(sum\()?max by \((queue, )?state\) \(/)
  })

  test('every alert queries documented metrics and labels', () => {
    for (const { alert, expr } of rules) expect([alert, findUnknown(expr, series)]).toEqual([alert, []])
  })

  test('every alert has a severity, a duration, a summary and an entry in the README', async () => {
    const readme = await read('README.md')
    for (const { alert, for: duration, labels, annotations } of rules) {
      expect([alert, { duration, labels, annotations }]).toEqual([
        alert,
        {
          duration: expect.stringMatching(/^\d+[mh]$/),
          labels: { severity: expect.stringMatching(/^(critical|warning|info)$/), service },
          annotations: { summary: filled, description: filled },
        },
      ])
      // Name, severity, what it means, what to do.
      expect(readme).toMatch(new RegExp(`^\\| ${alert} \\| ${labels.severity} \\| [^|]{20,} \\| [^|]{20,} \\|$`, 'm'))
    }
    const explained = [...readme.matchAll(/^\| (\w+) \| (?:critical|warning|info) \|/gm)].map(([, name]) => name)
    const own = explained.filter((name) => name?.toLowerCase().startsWith(service))
    expect(own).toEqual(rules.map(({ alert }) => alert))
  })
})

interface Expression {
  selectors: { name: string; labels: string[] }[]
  /** Labels to group, join or match by. */
  groupings: string[]
}

function readExpression(expression: string): Expression {
  // Quoted text may contain any syntax.
  const quoted = expression.replaceAll(/"(?:\\.|[^"\\])*"/g, '""')
  // Numbers and durations such as 1e9 and 1h.
  const bare = quoted.replaceAll(/(?<![\w:])\d[\w.]*/g, ' ')
  const groupings: string[] = []
  const rest = bare.replaceAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_all, labels) => {
    groupings.push(...namesIn(labels))
    return ' '
  })
  const selectors = [...rest.replaceAll(/\[[^\]]*\]/g, ' ').matchAll(/([a-zA-Z_:][\w:]*)\s*(\(|\{[^}]*\})?/g)]
    .filter(([, name = '', after = '']) => after !== '(' && !KEYWORDS.has(name))
    .map(([, name = '', after = '']) => ({ name, labels: namesIn(after.replaceAll('""', '')) }))
  return { selectors, groupings }
}

const KEYWORDS = new Set(['and', 'or', 'unless', 'by', 'without', 'bool', 'offset', 'inf', 'nan'])

const namesIn = (text: string) => text.match(/[a-zA-Z_]\w*/g) ?? []

const filled = expect.stringMatching(/\S/)

test.each([
  [
    'sum by (a) (rate(m_total{b=~"x|y{z}", c!="d"}[5m])) / on (e) group_left (f) n',
    { m_total: ['b', 'c'], n: [] },
    ['a', 'e', 'f'],
  ],
  ['histogram_quantile(0.95, sum by (le) (rate(m_bucket[$__rate_interval]))) > 1e9', { m_bucket: [] }, ['le']],
  ['m offset 1h unless max without (a) (n) and absent(o{a="by (q)"}) or vector(0)', { m: [], n: [], o: ['a'] }, ['a']],
])('the parser finds metrics and labels in %s', (expression, selectors, groupings) => {
  const found = readExpression(expression)
  expect(Object.fromEntries(found.selectors.map(({ name, labels }) => [name, labels]))).toEqual(selectors)
  expect(found.groupings).toEqual(groupings)
})
