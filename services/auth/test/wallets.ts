// Wallets as browsers have them, with real keys: an EIP-1193 provider and a Solana wallet.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { base58 } from '@scure/base'

export const APP = 'https://site.example/sign-in'

/** Members of a message that a test changes. */
export interface Given {
  domain?: string
  uri?: string
  address?: string
  statement?: string
  issuedAt?: Date
  /** Further lines, `Key: value`. */
  more?: string[]
}

export interface Wallet {
  chain: 'ethereum' | 'solana'
  address: string
  message(now: Date, given?: Given): string
  /** Signature as the client sends it. */
  sign(message: string): string
  /** Body of a sign-in. */
  body(now: Date, given?: Given): { chain: string; message: string; signature: string }
}

const bodyOf = (wallet: Wallet, now: Date, given?: Given) => {
  const message = wallet.message(now, given)
  return { chain: wallet.chain, message, signature: wallet.sign(message) }
}

/** Hash that `personal_sign` signs (ERC-191). */
const hashOf = (message: Buffer) =>
  keccak_256(Buffer.concat([Buffer.from(`\x19Ethereum Signed Message:\n${message.length}`), message]))

export type EthereumSignature = Pick<InstanceType<typeof secp256k1.Signature>, 'r' | 's'> & { recovery: number }

export function ethereumWallet() {
  const { secretKey, publicKey } = secp256k1.keygen()
  const key = secp256k1.Point.fromBytes(publicKey).toBytes(false)
  const address = `0x${Buffer.from(keccak_256(key.subarray(1)).subarray(-20)).toString('hex')}`
  const parts = (message: Buffer): EthereumSignature => {
    const made = secp256k1.sign(hashOf(message), secretKey, { prehash: false, format: 'recovered' })
    const { r, s, recovery } = secp256k1.Signature.fromBytes(made, 'recovered')
    return { r, s, recovery: recovery as number }
  }
  const signature = (message: Buffer) => ethereumSignature(parts(message))
  const wallet: Wallet = {
    chain: 'ethereum',
    address,
    message: (now, given = {}) => {
      const { domain = 'site.example', uri = APP, statement, issuedAt = now, more = [] } = given
      return [
        `${domain} wants you to sign in with your Ethereum account:`,
        given.address ?? address,
        '',
        ...(statement === undefined ? [] : [statement]),
        '',
        `URI: ${uri}`,
        'Version: 1',
        'Chain ID: 1',
        `Issued At: ${issuedAt.toISOString()}`,
        ...more,
      ].join('\n')
    },
    sign: (message) => signature(Buffer.from(message)),
    body: (now, given) => bodyOf(wallet, now, given),
  }
  return {
    ...wallet,
    parts: (message: string) => parts(Buffer.from(message)),
    /** Answers the requests of EIP-1193 that auth-js makes. */
    provider: {
      address,
      async request({ method, params }: { method: string; params?: unknown }): Promise<unknown> {
        if (method === 'eth_requestAccounts') return [address]
        if (method === 'eth_chainId') return '0x1'
        if (method !== 'personal_sign') throw new Error(`unexpected ${method}`)
        const [hex] = params as [string, string]
        return signature(Buffer.from(hex.slice(2), 'hex'))
      },
      on: () => {},
      removeListener: () => {},
    },
  }
}

/** Hexadecimal form; `last`: recovery byte in place of 27 or 28. */
export const ethereumSignature = ({ r, s, recovery }: EthereumSignature, last = 27 + recovery) =>
  `0x${[r, s].map((number) => number.toString(16).padStart(64, '0')).join('')}${last.toString(16).padStart(2, '0')}`

/** The other valid signature of the same message: the order of the curve minus s. */
export const withHighS = ({ r, s, recovery }: EthereumSignature) => ({
  r,
  s: secp256k1.Point.Fn.ORDER - s,
  recovery: 1 - recovery,
})

export function solanaWallet() {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  const key = Buffer.from(x, 'base64url')
  const address = base58.encode(key)
  const wallet: Wallet = {
    chain: 'solana',
    address,
    message: (now, { domain = 'site.example', uri = APP, statement, issuedAt = now, more = [], ...given } = {}) =>
      [
        `${domain} wants you to sign in with your Solana account:`,
        given.address ?? address,
        ...(statement === undefined ? [''] : ['', statement, '']),
        'Version: 1',
        `URI: ${uri}`,
        `Issued At: ${issuedAt.toISOString()}`,
        ...more,
      ].join('\n'),
    sign: (message) => sign(null, Buffer.from(message), privateKey).toString('base64url'),
    body: (now, given) => bodyOf(wallet, now, given),
  }
  const publicKeyObject = { toBase58: () => address }
  return {
    ...wallet,
    key,
    privateKey,
    /** A wallet that signs what auth-js writes. */
    signer: {
      publicKey: publicKeyObject,
      signMessage: async (message: Uint8Array) => new Uint8Array(sign(null, message, privateKey)),
    },
    /** A wallet that writes the message itself (Wallet Standard). */
    writer: {
      publicKey: publicKeyObject,
      async signIn(
        input: Record<'domain' | 'uri' | 'version' | 'issuedAt' | 'nonce', string> & { statement?: string },
      ) {
        const { domain, uri, version, issuedAt, nonce, statement } = input
        const text = [
          ...[`${domain} wants you to sign in with your Solana account:`, address, ''],
          ...(statement ? [statement, ''] : []),
          ...[
            `URI: ${uri}`,
            `Version: ${version}`,
            'Chain ID: solana:mainnet',
            `Nonce: ${nonce}`,
            `Issued At: ${issuedAt}`,
          ],
        ].join('\n')
        const signedMessage = new Uint8Array(Buffer.from(text))
        return [{ signedMessage, signature: new Uint8Array(sign(null, signedMessage, privateKey)) }]
      },
    },
  }
}

/** Solana's off-chain form, as a Ledger signs it. */
export function signAsLedger(wallet: { key: Buffer; privateKey: KeyObject }, message: string, domain: string): string {
  const bytes = Buffer.from(message)
  const length = Buffer.from([bytes.length & 0xff, bytes.length >> 8])
  const application = Buffer.alloc(32)
  application.write(domain)
  const head = Buffer.from('\xffsolana offchain\0', 'latin1')
  const content = Buffer.concat([head, application, Buffer.from([0, 1]), wallet.key, length, bytes])
  return sign(null, content, wallet.privateKey).toString('base64')
}
