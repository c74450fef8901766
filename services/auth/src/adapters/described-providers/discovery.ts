import { isStorable } from '@services/common/database/storable-json'
import type { Egress } from '@services/common/egress/egress'
import type { DiscoveryDocument } from '../../db/tables.ts'
import { countDiscovery } from '../../metrics.ts'
import { jsonObject } from '../json-object.ts'
import type { Endpoints } from '../oauth/provider.ts'
import { describeFailure, guardedFetch } from '../oauth/upstream.ts'
import { checkAddresses, startDeadline } from './check-address.ts'

const REQUIRED = ['issuer', 'authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const
const LISTS = [
  'scopes_supported',
  'response_types_supported',
  'grant_types_supported',
  'subject_types_supported',
] as const
/** Endpoints that are requested, or that a browser is sent to. */
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'] as const

const MAX_TEXT = 2048
/** Limits of all lists together: each use of a provider reads its description with the row. */
const MAX_ENTRY = 100
const MAX_LISTED = 100
const MAX_LISTS_LENGTH = 4 * 1024

interface DiscoverySource {
  address: string
  issuer: string
  /** Limit of the fetch and the checks together. */
  withinMs: number
}

export const discoveryAddress = (issuer: string) => `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`

/**
 * Fetches and checks the description of an issuer, with all endpoints that it names. Throws an Error that may be shown
 * to an admin: it quotes nothing of the answer but its issuer.
 */
export async function readDiscovery(egress: Egress, source: DiscoverySource): Promise<DiscoveryDocument> {
  try {
    const found = await readChecked(egress, source)
    countDiscovery('ok')
    return found
  } catch (error) {
    countDiscovery('failed')
    throw error
  }
}

async function readChecked(egress: Egress, { address, issuer, withinMs }: DiscoverySource): Promise<DiscoveryDocument> {
  const left = startDeadline(withinMs)
  const json = await fetchJson(egress, address, withinMs)
  const missing = REQUIRED.filter((name) => !isText(json[name]))
  if (missing.length > 0) {
    throw new Error(`OIDC discovery document is missing required fields: ${missing.join(', ')}`)
  }
  if (json.issuer !== issuer) {
    const named = String(json.issuer).slice(0, 200)
    throw failed(address, `the issuer is "${named}", not "${issuer}"`)
  }
  const found = ENDPOINTS.filter((name) => isText(json[name]))
  await checkAddresses(
    egress,
    found.map((name) => [name, String(json[name])]),
    left(),
  )
  return Object.fromEntries([['issuer', issuer], ...found.map((name) => [name, json[name]]), ...listsOf(json)])
}

function listsOf(json: Record<string, unknown>): [name: string, entries: string[]][] {
  let room = MAX_LISTS_LENGTH
  const fits = (entry: string) => {
    if (entry.length > MAX_ENTRY || entry.length > room) return false
    room -= entry.length
    return true
  }
  return LISTS.flatMap((name) => {
    const given = json[name]
    return Array.isArray(given) ? [[name, given.filter(isText).slice(0, MAX_LISTED).filter(fits)]] : []
  })
}

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TEXT && isStorable(value)

const failed = (address: string, why: string) => new Error(`OIDC discovery from "${address}" failed: ${why}`)

async function fetchJson(egress: Egress, address: string, withinMs: number): Promise<Record<string, unknown>> {
  let answer: Response
  let text: string
  try {
    answer = await guardedFetch(egress)(withinMs)(address, { headers: { accept: 'application/json' } })
    text = await answer.text()
  } catch (error) {
    throw failed(address, describeFailure(error))
  }
  if (answer.status !== 200) {
    const isRedirect = answer.status >= 300 && answer.status < 400
    throw failed(address, `the status is ${answer.status}${isRedirect ? ', and redirects are not followed' : ''}`)
  }
  try {
    return jsonObject(text, 'the answer is no JSON object')
  } catch (error) {
    throw failed(address, (error as Error).message)
  }
}

export const endpointsOf = (found: DiscoveryDocument): Endpoints => ({
  issuer: found.issuer,
  authorize: found.authorization_endpoint,
  token: found.token_endpoint,
  api: found.userinfo_endpoint ?? '',
  idTokens: { jwks: found.jwks_uri, isIssuer: (issuer) => issuer === found.issuer },
})
