// PBKDF2 (RFC 8018) in the forms of other systems. Forms and bounds: contract/auth-core.md 13.
import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'

export interface Pbkdf2Hash {
  kind: 'pbkdf2'
  digest: Digest
  iterations: number
  salt: Buffer
  hash: Buffer
  costly: boolean
}

type Digest = 'sha1' | 'sha256' | 'sha512'
const DIGEST_BYTES = { sha1: 20, sha256: 32, sha512: 64 }

/** Iterations of SHA-1 or SHA-256, times the blocks of a hash that is longer than the digest: about a second. */
const MAX_WORK = 5_000_000
/** An iteration of SHA-512 takes as long as three of the others. */
const WORK_PER_ITERATION = { sha1: 1, sha256: 1, sha512: 3 }
/** Above these a few in parallel would take the whole machine. Django's default is 1,200,000. */
const COSTLY_WORK = 1_200_000
const HASH_BYTES = { min: 16, max: 128 }
const MAX_SALT_BYTES = 128

/** Reads a hash; undefined for another kind and for one past the bounds. */
export function parsePbkdf2(text: string): Pbkdf2Hash | undefined {
  const found = parsePhc(text) ?? parseDjango(text) ?? parseAspNet(text)
  if (!found) return undefined
  const { digest, iterations, salt, hash } = found
  const work = iterations * WORK_PER_ITERATION[digest] * Math.ceil(hash.length / DIGEST_BYTES[digest])
  const isSized = hash.length >= HASH_BYTES.min && hash.length <= HASH_BYTES.max
  const isSalted = salt.length >= 1 && salt.length <= MAX_SALT_BYTES
  if (iterations < 1 || work > MAX_WORK || !isSized || !isSalted) return undefined
  return { kind: 'pbkdf2', ...found, costly: work > COSTLY_WORK }
}

const derive = promisify(pbkdf2)

export const derivePbkdf2 = ({ digest, iterations, salt, hash }: Pbkdf2Hash, password: string): Promise<Buffer> =>
  derive(password, salt, iterations, hash.length, digest)

type Found = Pick<Pbkdf2Hash, 'digest' | 'iterations' | 'salt' | 'hash'>

/**
 * `$pbkdf2-sha256$i=600000,l=32$salt$hash`, and passlib's `$pbkdf2-sha256$29000$salt$hash` with `.` in place of `+`.
 */
function parsePhc(text: string): Found | undefined {
  const [, digest = 'sha1', i, l, salt, hash] =
    /^\$pbkdf2(?:-(sha1|sha256|sha512))?\$(?:i=)?(\d{1,8})(?:,l=(\d{1,3}))?\$([\w+/.]+)\$([\w+/.]+)$/.exec(text) ?? []
  const bytes = decode(hash?.replaceAll('.', '+'))
  if (l !== undefined && Number(l) !== bytes?.length) return undefined
  return found(digest as Digest, i, decode(salt?.replaceAll('.', '+')), bytes)
}

/** `pbkdf2_sha256$1200000$salt$hash`: the salt is text. */
function parseDjango(text: string): Found | undefined {
  const [, digest, i, salt, hash] = /^pbkdf2_(sha1|sha256)\$(\d{1,8})\$([^$]+)\$([^$]+)$/.exec(text) ?? []
  return found(digest as Digest, i, salt === undefined ? undefined : Buffer.from(salt), decode(hash))
}

const ASP_NET_V2 = { salt: 16, hash: 32, iterations: '1000' }
const ASP_NET_DIGESTS: readonly Digest[] = ['sha1', 'sha256', 'sha512']

/**
 * ASP.NET Core Identity, base64: version 0 with fixed sizes, or version 1 with digest, iterations and size of the salt.
 */
function parseAspNet(text: string): Found | undefined {
  const bytes = /^A[A-Za-z0-9+/]{50,}={0,2}$/.test(text) ? decode(text) : undefined
  if (bytes?.[0] === 0 && bytes.length === 1 + ASP_NET_V2.salt + ASP_NET_V2.hash) {
    const end = 1 + ASP_NET_V2.salt
    return found('sha1', ASP_NET_V2.iterations, bytes.subarray(1, end), bytes.subarray(end))
  }
  if (bytes?.[0] !== 1) return undefined
  const [digest, iterations, size] = [1, 5, 9].map((at) => bytes.readUInt32BE(at)) as [number, number, number]
  const end = 13 + size
  return found(ASP_NET_DIGESTS[digest], String(iterations), bytes.subarray(13, end), bytes.subarray(end))
}

function found(
  digest: Digest | undefined,
  iterations: string | undefined,
  salt: Buffer | undefined,
  hash: Buffer | undefined,
): Found | undefined {
  return digest && iterations && salt && hash ? { digest, iterations: Number(iterations), salt, hash } : undefined
}

/** Decodes base64 with or without padding. */
function decode(text: string | undefined): Buffer | undefined {
  const bare = text?.replace(/={1,2}$/, '')
  return bare && bare.length % 4 !== 1 && /^[A-Za-z0-9+/]+$/.test(bare) ? Buffer.from(bare, 'base64') : undefined
}
