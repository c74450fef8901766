import { Resolver } from 'node:dns/promises'
import { open, stat } from 'node:fs/promises'
import { isIP } from 'node:net'

interface FoundAddress {
  address: string
  family: number
}

/** All addresses of a name; rejects with an error that has a `code`, as node:dns does. */
export type Resolve = (hostname: string) => Promise<readonly FoundAddress[]>

export interface ResolveOptions {
  /** Name servers with ports; those of /etc/resolv.conf if absent. */
  servers?: readonly string[]
  hostsPath?: string
  /** Total for a name; shorter than the limit of a connection. */
  timeoutMs?: number
}

/** A silent server is asked twice within the time of a name, which leaves time for another server. */
const ATTEMPT_MS = 1_000
const ATTEMPTS = 2
/** Some servers without IPv6 records stay silent instead of saying so. */
const OTHER_FAMILY_MS = 500
/** Further addresses would not be tried within the time of a connection. */
const MAX_ADDRESSES = 16

/**
 * Resolves untrusted names without `getaddrinfo`, which holds one of Node's four threads until the name server answers,
 * or twenty seconds. Four such names would block S3, PostgreSQL and the disk. Search domains are not tried. /etc/hosts
 * comes first, and `localhost` is this machine (RFC 6761 6.3).
 */
export function createResolve({ servers, hostsPath = '/etc/hosts', timeoutMs = 4_000 }: ResolveOptions = {}): Resolve {
  const hosts = createHosts(hostsPath)
  return async (hostname) => {
    const name = hostname.toLowerCase().replace(/\.$/, '')
    const known = (await hosts()).get(name)
    if (known) return known
    if (name === 'localhost' || name.endsWith('.localhost')) return LOOPBACK
    const resolver = new Resolver({ timeout: ATTEMPT_MS, tries: ATTEMPTS })
    if (servers) resolver.setServers(servers)
    return lookUp(resolver, name, timeoutMs)
  }
}

export const resolveName = createResolve()

const LOOPBACK: readonly FoundAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

async function lookUp(resolver: Resolver, name: string, timeoutMs: number): Promise<FoundAddress[]> {
  const cancel = () => resolver.cancel()
  const timers = [setTimeout(cancel, timeoutMs)]
  const soon = (addresses: string[]) => {
    timers.push(setTimeout(cancel, OTHER_FAMILY_MS))
    return addresses
  }
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name).then(soon), resolver.resolve6(name).then(soon)])
    const found = answers.flatMap((answer, index) =>
      answer.status === 'fulfilled' ? answer.value.slice(0, MAX_ADDRESSES).map(toFound(index === 0 ? 4 : 6)) : [],
    )
    if (found.length > 0) return found
    throw failureOf(answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : [])))
  } finally {
    for (const timer of timers) clearTimeout(timer)
  }
}

const toFound = (family: 4 | 6) => (address: string) => ({ address, family })

/** A silent server gets the socket code of a silent host. */
function failureOf(reasons: (Error & { code?: string })[]): Error {
  const silent = reasons.find(({ code }) => code === 'ETIMEOUT' || code === 'ECANCELLED')
  if (!silent) return reasons[0] ?? new Error('the name has no address')
  return Object.assign(new Error('no name server answered in time', { cause: silent }), { code: 'ETIMEDOUT' })
}

/** Some hosts files block thousands of names; the rest of a longer file is not read. */
const MAX_HOSTS_BYTES = 1024 ** 2

function createHosts(path: string): () => Promise<ReadonlyMap<string, readonly FoundAddress[]>> {
  let names = new Map<string, FoundAddress[]>()
  let version = ''
  return async () => {
    const { mtimeMs = 0, size = 0 } = (await stat(path).catch(() => undefined)) ?? {}
    if (version !== `${mtimeMs} ${size}`) {
      names = parseHosts(size > 0 ? await readStart(path) : '')
      version = `${mtimeMs} ${size}`
    }
    return names
  }
}

async function readStart(path: string): Promise<string> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(MAX_HOSTS_BYTES), position: 0 })
  return buffer.toString('utf8', 0, bytesRead)
}

function parseHosts(text: string): Map<string, FoundAddress[]> {
  const names = new Map<string, FoundAddress[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...aliases] = line.replace(/#.*/, '').trim().split(/\s+/)
    const family = isIP(address)
    for (const alias of family ? aliases : []) {
      const name = alias.toLowerCase()
      names.set(name, [...(names.get(name) ?? []), { address, family }])
    }
  }
  return names
}
