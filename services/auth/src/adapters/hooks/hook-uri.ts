export type HookTarget = HttpTarget | FunctionTarget

interface HttpTarget {
  kind: 'http'
  url: string
}

export interface FunctionTarget {
  kind: 'function'
  schema: string
  name: string
}

/** Hosts that are reached without TLS: the request does not leave the machine. */
const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]', 'host.docker.internal']

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/

/**
 * Parses `https://…`, `http://` of this machine, or `pg-functions://…/schema/function`, of which the host is ignored.
 */
export function parseHookUri(value: string): HookTarget {
  if (/\s/.test(value) || !URL.canParse(value)) throw new Error(FORMS)
  const { protocol, hostname, pathname, username, password, hash } = new URL(value)
  if (protocol === 'pg-functions:') {
    const [, schema = '', name = ''] = pathname.split('/')
    if (!IDENTIFIER.test(schema) || !IDENTIFIER.test(name)) throw new Error(FORMS)
    return { kind: 'function', schema, name }
  }
  if (username || password || hash) throw new Error('must have no user name, password and fragment')
  const isLocal = protocol === 'http:' && LOCAL_HOSTS.includes(hostname)
  if (protocol !== 'https:' && !isLocal) throw new Error(FORMS)
  return { kind: 'http', url: value }
}

const FORMS =
  'must be https://…, http:// with a host of this machine (localhost, 127.0.0.1, [::1], host.docker.internal) or pg-functions://postgres/schema/function'

/** Names the target in the log; a query may hold a key. */
export function describeTarget(target: HookTarget): string {
  if (target.kind === 'function') return `pg-functions://postgres/${target.schema}/${target.name}`
  const { origin, pathname } = new URL(target.url)
  return origin + pathname
}
