import type { Egress, EgressOptions } from './egress.ts'

/** Opens the client, which is loaded with its first use: an idle service is smaller without it. */
export function openEgress(options: EgressOptions): Egress {
  let opened: Promise<Egress> | undefined
  const open = () => {
    opened ??= import('./guarded-fetch.ts').then(({ createGuardedFetch }) => createGuardedFetch(options))
    return opened
  }
  return {
    check: async (url) => (await open()).check(url),
    fetch: async (...args) => (await open()).fetch(...args),
    close: async () => (await opened)?.close(),
  }
}
