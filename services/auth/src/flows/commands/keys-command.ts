import { randomBytes, randomInt } from 'node:crypto'
import { command, printResult, UsageError } from '@services/common/process/command-line'
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import { KEY_BYTES, KEY_ID } from '../../core/keys/encryption-keys.ts'

/** Characters of ids, without those that look alike. */
const ID_LETTERS = 'abcdefghjkmnpqrstuvwxyz23456789'

/** Keys of one month differ by them. */
const RANDOM_LETTERS = 4

const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'] as const

/** 128 bits of security; 2,048 bits give 112 (NIST SP 800-57 part 1, table 2). */
const RSA_BITS = 3072

const ROTATION = `This is the whole value of AUTH_JWT_KEYS, and a secret. To replace keys without signing users out:
  1. add the new key to the "keys" of the old value, without "sign" in its key_ops; restart all replicas
  2. wait 10 minutes, until applications have read it at /.well-known/jwks.json
  3. move "sign" from the old key's key_ops to the new one's; restart all replicas
  4. drop the old key once its tokens have expired (AUTH_JWT_EXP)
`

const ENCRYPTION_ROTATION = `This is an entry of AUTH_ENCRYPTION_KEYS, and a secret. To replace the key that encrypts:
  1. append it to AUTH_ENCRYPTION_KEYS, or where that is unset, set it to ENCRYPTION_KEY and this; restart all replicas
  2. move it to the front; restart all replicas
  3. keys encryption rotate, until keys encryption status counts 0 rows of the old key
  4. drop the old key; restart all replicas
`

export const keysGenerate = command({
  name: 'keys generate',
  summary: 'make a key that signs access tokens, for AUTH_JWT_KEYS, or one that encrypts',
  options: {
    encryption: { meaning: 'make an entry of AUTH_ENCRYPTION_KEYS instead' },
    alg: {
      value: 'ALG',
      meaning: `${ALGORITHMS.join(', ')}; RS256 if absent. getClaims() of the client throws for EdDSA`,
    },
    kid: {
      value: 'ID',
      meaning: `its key id; if absent, the thumbprint (RFC 7638) of the key, or the month and ${RANDOM_LETTERS} random letters for one that encrypts`,
    },
  },
  run: async ({ options, json }) => {
    if (options.encryption) return printEncryptionKey(options, json)
    const alg = ALGORITHMS.find((each) => each === (options.alg ?? 'RS256'))
    if (!alg) throw new UsageError(`--alg must be one of ${ALGORITHMS.join(', ')}`)
    if (options.kid?.trim() === '') throw new UsageError('--kid must not be empty')
    const set = await generateKeySet(alg, options.kid)
    printResult(json, set, JSON.stringify(set))
    process.stderr.write(ROTATION)
  },
})

function printEncryptionKey({ alg, kid }: { alg?: string | undefined; kid?: string | undefined }, json: boolean): void {
  if (alg !== undefined) throw new UsageError('--alg is for keys that sign')
  if (kid !== undefined && !KEY_ID.test(kid)) throw new UsageError('--kid must be 1 to 16 of a-z, 0-9 and the hyphen')
  const id = kid ?? `${new Date().toISOString().slice(0, 7)}-${randomLetters(RANDOM_LETTERS)}`
  const key = randomBytes(KEY_BYTES).toString('base64url')
  printResult(json, { id, key }, `${id}:${key}`)
  process.stderr.write(ENCRYPTION_ROTATION)
}

const randomLetters = (length: number) =>
  Array.from({ length }, () => ID_LETTERS[randomInt(ID_LETTERS.length)]).join('')

/** Makes a set of one key. `iat` is its age, as in OpenID Federation 1.0, section 8.7.2. */
export async function generateKeySet(alg: (typeof ALGORITHMS)[number], kid?: string) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true, modulusLength: RSA_BITS })
  const material = await exportJWK(privateKey)
  const id = kid ?? (await calculateJwkThumbprint(material))
  const made = { iat: Math.floor(Date.now() / 1000) }
  return { keys: [{ ...material, kid: id, alg, use: 'sig', key_ops: ['sign', 'verify'], ...made }] }
}
