// Messages that wallets sign (EIP-4361, and its form for Solana): reading, without judging. Grammar and refusals:
// contract/auth-external.md 2.8. Tests: signed-message.test.ts.
import { apiError } from '../../errors.ts'

/** Names of the chains in messages and refusals. */
export const TITLES = { ethereum: 'Ethereum', solana: 'Solana' } as const
export type ChainName = keyof typeof TITLES

export interface SignedMessage {
  /** Signed bytes. */
  bytes: Buffer
  /** Host with port that the wallet showed. */
  domain: string
  address: string
  statement: string
  uri: string
  /** Number of the chain, or Solana's name of the cluster. */
  chainId: string
  nonce: string
  issuedAt: Date
  expiresAt: Date | undefined
  notBefore: Date | undefined
}

const MIN_BYTES = 64
const MAX_BYTES = 20 * 1024
const MIN_LINES = 6

/** Longest host name with a port. */
const MAX_DOMAIN = 259
const DOMAIN =
  /^(?:localhost|(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+(?:[a-z]{2,63}|xn--[a-z\d-]{1,59}))(?::\d{1,5})?$/i

/** RFC 3339. */
const TIME =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,12})?(Z|[+-]\d\d:\d\d)$/

const RULES = {
  ethereum: {
    prefix: 'siwe',
    address: /^0x[\da-f]{40}$/i,
    addressRefusal: 'wallet address is not a valid Ethereum address',
    // 256 bits, as the chain's own contracts read it.
    chainId: /^[1-9]\d{0,77}$/,
  },
  solana: {
    prefix: 'siws',
    address: /^[1-9A-HJ-NP-Za-km-z]{32,44}$/,
    addressRefusal: 'wallet address is not in base58 format',
    chainId: /^(solana:(mainnet|devnet|testnet|localnet))?$/,
  },
} as const

const KEYS = [
  ...['URI', 'Version', 'Chain ID', 'Nonce', 'Issued At', 'Expiration Time', 'Not Before', 'Request ID'],
  'Resources',
]

/** Throws validation_failed for a text that is no message by its length. */
export function requireLength(text: string): void {
  const bytes = Buffer.byteLength(text)
  if (bytes < MIN_BYTES) throw refused('message is too short')
  if (bytes > MAX_BYTES) throw refused('message must not exceed 20KB')
}

/** Reads a message; throws validation_failed with the first fault. */
export function readMessage(text: string, chain: ChainName): SignedMessage {
  const rules = RULES[chain]
  const require = (isMet: boolean, fault: string) => {
    if (!isMet) throw refused(`${rules.prefix}: ${fault}`)
  }
  // Signed as bytes: a half of a surrogate pair is none, and no client writes a NUL.
  require(text.isWellFormed() && !text.includes('\0'), 'message is not text')
  const lines = text.split('\n')
  require(lines.length >= MIN_LINES, `message needs at least ${MIN_LINES} lines`)
  const [first = '', address = '', third, fourth = '', fifth] = lines
  const ending = ` wants you to sign in with your ${TITLES[chain]} account:`
  require(first.endsWith(ending), `message first line does not end in "${ending}"`)
  const domain = first.slice(0, -ending.length)
  require(domain.length <= MAX_DOMAIN && DOMAIN.test(domain), 'domain in first line of message is not valid')
  require(rules.address.test(address), rules.addressRefusal)
  require(third === '', 'third line must be empty')
  const statement = fourth !== '' && fifth === '' ? fourth : ''
  const fields = readFields(lines, statement === '' ? 3 : 5, require)

  const field = (key: string) => fields.get(key) ?? ''
  const time = (key: string) => {
    const value = fields.get(key)
    if (value === undefined) return undefined
    const read = readTime(value)
    require(read !== undefined, `${key} is not a valid ISO8601 timestamp`)
    return read
  }
  require(fields.has('URI'), 'URI is not specified')
  require(URL.canParse(field('URI')), 'URI is not valid')
  const version = field('Version').slice(0, 20)
  require(version === '1', `Version value is not supported, expected 1 got ${JSON.stringify(version)}`)
  require(rules.chainId.test(field('Chain ID')), 'Chain ID is not valid')
  const issuedAt = time('Issued At')
  if (!issuedAt) throw refused(`${rules.prefix}: Issued At is not specified`)
  const [expiresAt, notBefore] = [time('Expiration Time'), time('Not Before')]
  require(!expiresAt || issuedAt <= expiresAt, 'Issued At is after Expiration Time')
  require(!expiresAt || !notBefore || notBefore <= expiresAt, 'Not Before is after Expiration Time')
  return {
    ...{ bytes: Buffer.from(text), domain, address, statement, issuedAt, expiresAt, notBefore },
    ...{ uri: field('URI'), chainId: field('Chain ID'), nonce: field('Nonce') },
  }
}

/**
 * Reads the lines of `Key: value` and the list of resources. A key given twice would leave open which one was meant.
 */
function readFields(lines: string[], from: number, require: (isMet: boolean, fault: string) => void) {
  const fields = new Map<string, string>()
  let resources: number | undefined
  for (const [index, line] of lines.entries()) {
    if (index < from || line === '') continue
    if (resources !== undefined && line.startsWith('- ')) {
      require(URL.canParse(line.slice(2)), `Resource at position ${resources} has invalid URI`)
      resources++
      continue
    }
    resources = undefined
    const colon = line.indexOf(':')
    // auth-js writes the line of a Solana message without a colon.
    const isBare = line === 'Resources'
    require(colon >= 0 || isBare, `encountered unparsable line at index ${index}`)
    const key = isBare ? line : line.slice(0, colon).trim()
    if (!KEYS.includes(key)) continue
    require(!fields.has(key), `${key} is specified more than once`)
    fields.set(key, isBare ? '' : line.slice(colon + 1).trim())
    if (key === 'Resources') resources = 0
  }
  return fields
}

function readTime(text: string): Date | undefined {
  const [, year, month, day] = TIME.exec(text) ?? []
  const time = new Date(text)
  if (day === undefined || Number.isNaN(time.getTime())) return undefined
  // The 30th of February would become a day of March.
  const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day)
  return isDay ? time : undefined
}

const refused = (message: string) => apiError('validation_failed', { message })
