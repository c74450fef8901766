import { command, printResult, UsageError } from '@services/common/process/command-line'
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'

const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'] as const

/** 128 bits of security; 2,048 bits give 112 (NIST SP 800-57 part 1, table 2). */
const RSA_BITS = 3072

const ROTATION = `This is the whole value of AUTH_JWT_KEYS, and a secret. To replace keys without signing users out:
  1. add the new key to the "keys" of the old value, without "sign" in its key_ops; restart all replicas
  2. wait 10 minutes, until applications have read it at /.well-known/jwks.json
  3. move "sign" from the old key's key_ops to the new one's; restart all replicas
  4. drop the old key once its tokens have expired (AUTH_JWT_EXP)
`

export const keysGenerate = command({
  name: 'keys generate',
  summary: 'make a key that signs access tokens, for AUTH_JWT_KEYS',
  options: {
    alg: {
      value: 'ALG',
      meaning: `${ALGORITHMS.join(', ')}; RS256 if absent. getClaims() of the client throws for EdDSA`,
    },
    kid: { value: 'ID', meaning: "its key id; the key's thumbprint (RFC 7638) if absent" },
  },
  run: async ({ options, json }) => {
    const alg = ALGORITHMS.find((each) => each === (options.alg ?? 'RS256'))
    if (!alg) throw new UsageError(`--alg must be one of ${ALGORITHMS.join(', ')}`)
    if (options.kid?.trim() === '') throw new UsageError('--kid must not be empty')
    const set = await generateKeySet(alg, options.kid)
    printResult(json, set, JSON.stringify(set))
    process.stderr.write(ROTATION)
  },
})

export async function generateKeySet(alg: (typeof ALGORITHMS)[number], kid?: string) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true, modulusLength: RSA_BITS })
  const material = await exportJWK(privateKey)
  const id = kid ?? (await calculateJwkThumbprint(material))
  return { keys: [{ ...material, kid: id, alg, use: 'sig', key_ops: ['sign', 'verify'] }] }
}
