import { lookup } from 'node:dns/promises'
import type { GuardOptions } from '@services/common/egress/ssrf-guard'
import { VERSION } from '../../version.ts'
import type { RemoteTimeouts } from './deadlines.ts'
import type { Remote, RemoteOptions } from './fetch-remote.ts'

/**
 * Opens the clients for servers that callers name, and for those of the operator, which may be private
 * (`trustedRemote`).
 */
export function openRemotes(
  egress: GuardOptions & Pick<RemoteOptions, 'standIns'>,
  timeouts: Partial<RemoteTimeouts> = {},
): { remote: Remote; trustedRemote: Remote } {
  const both = { userAgent: `media/${VERSION}`, timeouts }
  return { remote: openWhenUsed({ ...both, ...egress }), trustedRemote: openWhenUsed({ ...both, ...ANYWHERE }) }
}

/** The machine's own resolver knows the short names of a cluster. */
const ANYWHERE: RemoteOptions = {
  allowCidrs: ['0.0.0.0/0', '::/0'],
  resolve: (hostname) => lookup(hostname, { all: true }),
}

/** Loads the HTTP client with the first request, which saves memory of an idle service. */
function openWhenUsed(options: RemoteOptions): Remote {
  let opened: Promise<Remote> | undefined
  const open = () => {
    opened ??= import('./fetch-remote.ts').then(({ createRemote }) => createRemote(options))
    return opened
  }
  return {
    fetch: async (...args) => (await open()).fetch(...args),
    post: async (...args) => (await open()).post(...args),
    checkUrl: async (url) => (await open()).checkUrl(url),
    close: async () => (await opened)?.close(),
  }
}
