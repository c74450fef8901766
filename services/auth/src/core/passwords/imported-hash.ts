// Password hashes of other systems. An accepted hash can be verified within bounds of memory and time, and
// `verifyImported` never throws. The next sign-in replaces them (hash-password.ts).
import { createCipheriv, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { verify as verifyArgon2 } from 'argon2'
import { phcOfKeycloak } from './keycloak-hash.ts'
import { derivePbkdf2, type Pbkdf2Hash, parsePbkdf2 } from './pbkdf2-hash.ts'

type ImportedHash =
  | Pbkdf2Hash
  | { kind: 'argon2'; text: string; costly: boolean }
  | { kind: 'bcrypt'; salt: string; hash: string; costly: boolean }
  | { kind: 'scrypt'; cost: ScryptCost; salt: Buffer; hash: Buffer; signerKey: Buffer | undefined; costly: boolean }

type ScryptCost = Required<Pick<ScryptOptions, 'N' | 'r' | 'p'>>

/** Longer than any hash with the largest salt; bounds the work of the expressions below. */
const MAX_HASH_LENGTH = 1024

/** A wrong password could match fewer bytes in a lifetime of attempts. */
const MIN_HASH_BYTES = 16
const MAX_HASH_BYTES = 128

/** Each step doubles the time: 15 is about two seconds, the highest cost the format knows (31) a core for two days. */
const MAX_BCRYPT_COST = 15

/** contract/auth-core.md 13. */
const MAX_ARGON2 = { memoryKib: 1_048_576, passes: 20, lanes: 16 }

const MAX_SCRYPT_MEMORY_BYTES = 256 * 1024 * 1024
/** N × r × p: about three seconds. N = 2^17, r = 8, p = 1, the usual recommendation, is 2^20. */
const MAX_SCRYPT_WORK = 2 ** 23

/** Hashes above any of these are verified one at a time: a few in parallel would take the whole machine. */
const COSTLY = { bytes: 64 * 1024 * 1024, argon2KibPasses: 512 * 1024, bcryptCost: 12, scryptWork: 2 ** 20 }

const BCRYPT_READS_BYTES = 72

export const isSupportedHash = (hash: string): boolean => parseHash(hash) !== undefined

export const isCostly = (hash: string): boolean => parseHash(hash)?.costly ?? true

/** Whether a match proves only the beginning of the password, because bcrypt ignores the rest. */
export const readsOnlyTheBeginning = (hash: string, password: string): boolean =>
  parseHash(hash)?.kind === 'bcrypt' && Buffer.byteLength(password) > BCRYPT_READS_BYTES

/** Verifies a password; false for a corrupt or unsupported hash. */
export async function verifyImported(hash: string, password: string): Promise<boolean> {
  const parsed = parseHash(hash)
  try {
    // An older hash of ours may have larger parameters than are accepted from elsewhere.
    if (!parsed) return hash.startsWith('$argon2id$v=19$') && (await verifyArgon2(hash, password))
    if (parsed.kind === 'argon2') return await verifyArgon2(parsed.text, password)
    if (parsed.kind === 'pbkdf2') return isEqual(await derivePbkdf2(parsed, password), parsed.hash)
    if (parsed.kind === 'bcrypt') return await verifyBcrypt(parsed.salt, parsed.hash, password)
    return await verifyScrypt(parsed, password)
  } catch {
    return false
  }
}

function parseHash(hash: string): ImportedHash | undefined {
  if (hash.length > MAX_HASH_LENGTH) return undefined
  if (hash.startsWith('{')) return parseHash(phcOfKeycloak(hash) ?? '')
  if (hash.startsWith('$argon2')) return parseArgon2(hash)
  if (hash.startsWith('$fbscrypt$')) return parseFirebaseScrypt(hash)
  if (hash.startsWith('$scrypt$')) return parseScrypt(hash)
  return parseBcrypt(hash) ?? parsePbkdf2(hash)
}

/** argon2d is open to side channels, v=16 is broken, data= and keyid= need values that are not in the string. */
function parseArgon2(hash: string): ImportedHash | undefined {
  const match = /^\$argon2(?:i|id)\$v=19\$([mtp]=\d{1,7}(?:,[mtp]=\d{1,7}){2})\$([^$]+)\$([^$]+)$/.exec(hash)
  if (!match) return undefined
  // Most libraries write m,t,p; ours writes m,p,t.
  const parameters = new Map((match[1] as string).split(',').map((entry) => [entry[0], Number(entry.slice(2))]))
  const [memoryKib = 0, passes = 0, lanes = 0] = ['m', 't', 'p'].map((name) => parameters.get(name))
  const [salt, digest] = match.slice(2).map(decodeUnpadded)
  // Eight bytes of salt and eight blocks of memory a lane are the least argon2 computes with (RFC 9106 section 3.1).
  const canBeComputed = passes >= 1 && lanes >= 1 && memoryKib >= 8 * lanes && (salt?.length ?? 0) >= 8
  const isWithin = memoryKib <= MAX_ARGON2.memoryKib && passes <= MAX_ARGON2.passes && lanes <= MAX_ARGON2.lanes
  if (!canBeComputed || !isWithin || !isHashSized(digest)) return undefined
  const costly = memoryKib * 1024 > COSTLY.bytes || memoryKib * passes > COSTLY.argon2KibPasses
  return { kind: 'argon2', text: hash, costly }
}

function parseBcrypt(hash: string): ImportedHash | undefined {
  const [, cost, salt, digest] = /^\$2[aby]\$(\d\d)\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/.exec(hash) ?? []
  if (!salt || !digest || Number(cost) < 4 || Number(cost) > MAX_BCRYPT_COST) return undefined
  // The three letters name one algorithm. Under $2a$ the library would also repeat a historic fault with passwords of
  // 255 bytes, which the systems that write $2a$ today do not have.
  return { kind: 'bcrypt', salt: `$2b$${cost}$${salt}`, hash: digest, costly: Number(cost) > COSTLY.bcryptCost }
}

/** `$scrypt$ln=17,r=8,p=1$salt$hash`: the PHC form, base64 without padding. */
function parseScrypt(hash: string): ImportedHash | undefined {
  const [, ln, r, p, salt, digest] =
    /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([^$]+)\$([^$]+)$/.exec(hash) ?? []
  return scryptHash([ln, r, p], decodeUnpadded(salt), decodeUnpadded(digest), undefined)
}

/** `$fbscrypt$v=1,n=14,r=8,p=1,ss=…,sk=…$salt$hash`, base64 with padding. Without a signer key it cannot be checked. */
function parseFirebaseScrypt(hash: string): ImportedHash | undefined {
  const [, n, r, p, ss = '', sk, salt, digest] =
    /^\$fbscrypt\$v=1,n=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})(?:,ss=([^,$]+))?,sk=([^,$]+)\$([^$]+)\$([^$]+)$/.exec(hash) ??
    []
  const separator = ss === '' ? Buffer.alloc(0) : decodePadded(ss)
  const signerKey = decodePadded(sk)
  const ownSalt = decodePadded(salt)
  const wanted = decodePadded(digest)
  if (!separator || !signerKey || !ownSalt || signerKey.length !== wanted?.length) return undefined
  return scryptHash([n, r, p], Buffer.concat([ownSalt, separator]), wanted, signerKey)
}

function scryptHash(
  parameters: (string | undefined)[],
  salt: Buffer | undefined,
  hash: Buffer | undefined,
  signerKey: Buffer | undefined,
): ImportedHash | undefined {
  const [ln, r, p] = parameters.map(Number) as [number, number, number]
  const cost = { N: 2 ** ln, r, p }
  const bytes = scryptMemory(cost)
  const work = cost.N * r * p
  // Written as conditions that hold, because NaN (no match) exceeds no bound.
  const isWithin =
    ln >= 1 && r >= 1 && p >= 1 && p <= 255 && bytes <= MAX_SCRYPT_MEMORY_BYTES && work <= MAX_SCRYPT_WORK
  if (!isWithin || !salt || !isHashSized(hash)) return undefined
  return { kind: 'scrypt', cost, salt, hash, signerKey, costly: bytes > COSTLY.bytes || work > COSTLY.scryptWork }
}

const scryptMemory = ({ N, r, p }: ScryptCost) => 128 * r * (N + p)

const isHashSized = (hash: Buffer | undefined): hash is Buffer =>
  hash !== undefined && hash.length >= MIN_HASH_BYTES && hash.length <= MAX_HASH_BYTES

const decodePadded = (text: string | undefined) =>
  text && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined

const decodeUnpadded = (text: string | undefined) =>
  text && text.length % 4 !== 1 && /^[A-Za-z0-9+/]+$/.test(text) ? Buffer.from(text, 'base64') : undefined

/** Loads bcrypt with the first such hash; its own comparison is `strcmp`. */
async function verifyBcrypt(salt: string, wanted: string, password: string): Promise<boolean> {
  const { default: bcrypt } = await import('bcrypt')
  const made = await bcrypt.hash(password, salt)
  return isEqual(Buffer.from(made.slice(-wanted.length)), Buffer.from(wanted))
}

const deriveKey = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)

/** Firebase: the key derived from the password encrypts the signer key, and the result is the hash. */
async function verifyScrypt(
  { cost, salt, hash, signerKey }: Extract<ImportedHash, { kind: 'scrypt' }>,
  password: string,
): Promise<boolean> {
  // Node calculates the memory slightly differently; parseScrypt has checked the real bound.
  const options = { ...cost, maxmem: 2 * scryptMemory(cost) + 1024 * 1024 }
  if (!signerKey) return isEqual(await deriveKey(password, salt, hash.length, options), hash)
  const cipher = createCipheriv('aes-256-ctr', await deriveKey(password, salt, 32, options), Buffer.alloc(16))
  return isEqual(Buffer.concat([cipher.update(signerKey), cipher.final()]), hash)
}

const isEqual = (a: Buffer, b: Buffer) => a.length === b.length && timingSafeEqual(a, b)
