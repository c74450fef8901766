import { withTimeout } from '@services/common/concurrency/with-timeout'
import { tracedFetch } from '@services/common/telemetry/spans'
import { AnswerTooLarge, readText } from '@services/common/upstream/read-text'
import type { Config } from '../../config.ts'
import { checkBody } from './check-template.ts'
import type { MailKind } from './kinds.ts'
import type { Template } from './template/template.ts'
import { forLocale } from './template-sources.ts'

export interface RemoteDeps {
  urls: ReadonlyMap<MailKind, string>
  config: Pick<Config['mail'], 'templateMaxBytes' | 'templateMaxAgeSeconds' | 'templateRetrySeconds'>
  now: () => Date
  /** Time that mails wait for a load, from its beginning; undefined: until its end. */
  mailWaitsMs?: number
  failed(kind: MailKind, locale: string, reason: string): void
}

interface Entry {
  template?: Template
  loadedAt: number
  triedAt: number
  isLoading: boolean
  /** Ends with the load, or before it, once mails need not wait any longer. */
  awaited?: Promise<unknown>
}

/**
 * Caches bodies for MAILER_TEMPLATE_MAX_AGE, failures for MAILER_TEMPLATE_RETRY_INTERVAL. Mails share one load; while
 * it takes longer than they wait, they get the last good template, if there is one.
 */
export function createRemoteTemplates(deps: RemoteDeps) {
  const entries = new Map<string, Entry>()
  return async (kind: MailKind, locale: string): Promise<Template | undefined> => {
    const url = deps.urls.get(kind)
    if (!url) return undefined
    const address = forLocale(url, locale)
    // URLs without `{locale}` share one entry.
    const key = `${kind} ${address}`
    const entry = entries.get(key) ?? { loadedAt: 0, triedAt: 0, isLoading: false }
    entries.set(key, entry)
    if (!entry.isLoading && isDue(deps, entry)) {
      const loaded = load(deps, entry, kind, locale, address)
      entry.awaited = deps.mailWaitsMs === undefined ? loaded : withTimeout(deps.mailWaitsMs, loaded)
    }
    await entry.awaited
    return entry.template
  }
}

function isDue({ now, config }: RemoteDeps, { template, loadedAt, triedAt }: Entry): boolean {
  const time = now().getTime()
  const isFresh = template && time - loadedAt < config.templateMaxAgeSeconds * 1000
  return !isFresh && time - triedAt >= config.templateRetrySeconds * 1000
}

async function load(deps: RemoteDeps, entry: Entry, kind: MailKind, locale: string, url: string): Promise<void> {
  entry.isLoading = true
  try {
    entry.template = checkBody(await fetchTemplate(url, deps.config.templateMaxBytes), kind)
    entry.loadedAt = deps.now().getTime()
  } catch (error) {
    deps.failed(kind, locale, (error as Error).message)
  } finally {
    entry.isLoading = false
    entry.triedAt = deps.now().getTime()
  }
}

/** Longest wait for a template server, connection and body together. */
const FETCH_WITHIN_MS = 10_000

/** Reasons that may differ on another machine. */
export const UNREACHABLE = /^its server (cannot be reached|took longer)/

/** Throws an Error fit for the log unless the answer is 200, in time and within the size. */
async function fetchTemplate(url: string, maxBytes: number): Promise<string> {
  const signal = AbortSignal.timeout(FETCH_WITHIN_MS)
  const explain = (error: unknown): never => {
    if (error instanceof AnswerTooLarge) throw new Error(`it is larger than ${maxBytes} bytes`)
    if (signal.aborted) throw new Error(`its server took longer than ${FETCH_WITHIN_MS / 1000} s`)
    throw new Error('its server cannot be reached')
  }
  const headers = { accept: 'text/html, text/plain;q=0.9, */*;q=0.1' }
  const response = await tracedFetch(url, { signal, headers }, { sendsTrace: true }).catch(explain)
  if (response.status === 200) return readText(response, maxBytes).catch(explain)
  await response.body?.cancel().catch(explain)
  throw new Error(`its server answered ${response.status}`)
}
