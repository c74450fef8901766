import { type Attributes, SpanKind } from '@opentelemetry/api'
import { traced } from '../telemetry/spans.ts'

export function databaseAttributes(url = ''): Attributes {
  const { hostname, port, pathname } = URL.parse(url) ?? { hostname: '', port: '', pathname: '' }
  return {
    'db.system.name': 'postgresql',
    ...(pathname.length > 1 ? { 'db.namespace': decodeURIComponent(pathname.slice(1)) } : {}),
    ...(hostname ? { 'server.address': hostname, 'server.port': Number(port) || 5432 } : {}),
  }
}

/**
 * Runs a statement in a client span named after its operations and tables (`SELECT users`), without its text, which may
 * hold values.
 */
export function tracedStatement<Result>(
  text: string,
  database: Attributes,
  run: () => Promise<Result>,
): Promise<Result> {
  const summary = summaryOf(text)
  const attributes = { ...database, 'db.query.summary': summary, 'db.operation.name': summary.split(' ', 1)[0] }
  return traced({ scope: 'database', name: summary, kind: SpanKind.CLIENT, attributes }, async (span) => {
    try {
      return await run()
    } catch (error) {
      const { severity, code } = error as { severity?: unknown; code?: unknown }
      if (severity !== undefined && typeof code === 'string') span?.setAttribute('db.response.status_code', code)
      throw error
    }
  })
}

const MAX_SUMMARIES = 500
const summaries = new Map<string, string>()

function summaryOf(text: string): string {
  const known = summaries.get(text)
  if (known !== undefined) return known
  const summary = summarize(text)
  if (summaries.size < MAX_SUMMARIES) summaries.set(text, summary)
  return summary
}

const LONGEST_SUMMARY = 255

/** Summarizes operations and tables in order, such as `INSERT users SELECT sessions`, without literals. */
export function summarize(text: string): string {
  const bare = text.replaceAll(LITERAL, (found) => (found.startsWith('"') ? found : ' '))
  const words: string[] = []
  for (const [, select, keyword = '', table = '', call] of bare.matchAll(PART)) {
    const [operation = ''] = (select ?? keyword).toUpperCase().split(/\s/, 1)
    const isSource = operation === 'FROM' || operation === 'JOIN'
    if (!isSource) words.push(operation)
    if (!select && !(isSource && call)) words.push(table.replaceAll('"', ''))
  }
  const [, first = 'statement'] = /^\s*(\w+)/.exec(bare) ?? []
  return (words.join(' ') || first.toUpperCase()).slice(0, LONGEST_SUMMARY)
}

/** Literals, comments, and quoted names, which may contain the delimiters of the others. */
const LITERAL = /"[^"]*"|\be'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|(\$(?:[a-z_]\w*)?\$).*?\1|--[^\n]*|\/\*.*?\*\//gis

/** Skips `for update`, `do update`, `distinct from`, `from` in `extract` and `trim`; a source with `(` is a call. */
const PART =
  /\b(?:(select)\b|(?<!\b(?:for|key|do|distinct)\s+|\b(?:extract|substring|trim|overlay)\s*\([^()]*)(insert\s+into|update|delete\s+from|from|join)\s+(?:only\s+)?((?:"[^"]+"|(?!only\b|lateral\b)[a-z_]\w*)(?:\.(?:"[^"]+"|[a-z_]\w*))?)(\s*\()?)/gi
