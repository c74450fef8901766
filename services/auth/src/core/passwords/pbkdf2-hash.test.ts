import { pbkdf2Sync } from 'node:crypto'
import { hash as argon2, argon2id } from 'argon2'
import { describe, expect, test } from 'vitest'
import { isCostly, isSupportedHash, verifyImported } from './imported-hash.ts'

const PASSWORD = 'correct horse battery'
const SALT = Buffer.from('sixteen-byte-slt')

type Digest = 'sha1' | 'sha256' | 'sha512'
const derived = (digest: Digest, iterations = 1000, salt: Buffer | string = SALT, bytes = 32) =>
  pbkdf2Sync(PASSWORD, salt, iterations, bytes, digest)
const base64 = (bytes: Buffer) => bytes.toString('base64')
const unpadded = (bytes: Buffer) => base64(bytes).replaceAll('=', '')

const django = (digest: 'sha1' | 'sha256', salt = 'aZ9.ü', iterations = 1000) =>
  `pbkdf2_${digest}$${iterations}$${salt}$${base64(derived(digest, Math.min(iterations, 1000), salt))}`

function aspNet(digest: Digest, { iterations = 1000, size = SALT.length } = {}) {
  const head = Buffer.alloc(13)
  head[0] = 1
  head.writeUInt32BE(['sha1', 'sha256', 'sha512'].indexOf(digest), 1)
  head.writeUInt32BE(iterations, 5)
  head.writeUInt32BE(size, 9)
  return base64(Buffer.concat([head, SALT, derived(digest, Math.min(iterations, 1000))]))
}

/** A credential as an export of a realm has it. */
const keycloak = (algorithm: string, value: string, more: object = {}) =>
  JSON.stringify({
    id: '6f1c2d34-5e6f-4a7b-8c9d-0e1f2a3b4c5d',
    type: 'password',
    secretData: JSON.stringify({ value, salt: base64(SALT), additionalParameters: {} }),
    credentialData: JSON.stringify({ hashIterations: 1000, algorithm, additionalParameters: {}, ...more }),
  })

const keycloakArgon2 = async () => {
  const hash = await argon2(PASSWORD, { type: argon2id, memoryCost: 7168, timeCost: 5, parallelism: 1, salt: SALT })
  const additionalParameters = {
    hashLength: ['32'],
    memory: ['7168'],
    type: ['id'],
    version: ['1.3'],
    parallelism: ['1'],
  }
  return keycloak('argon2', String(hash.split('$').at(-1)), { hashIterations: 5, additionalParameters })
}

describe('passwords of other systems', async () => {
  test.for<[string, string]>([
    ['PHC with SHA-256', `$pbkdf2-sha256$i=1000,l=32$${unpadded(SALT)}$${unpadded(derived('sha256'))}`],
    ['PHC with SHA-512', `$pbkdf2-sha512$i=1000$${unpadded(SALT)}$${unpadded(derived('sha512', 1000, SALT, 64))}`],
    ['PHC with SHA-1', `$pbkdf2$i=1000$${unpadded(SALT)}$${unpadded(derived('sha1', 1000, SALT, 20))}`],
    ['passlib', `$pbkdf2-sha256$1000$${unpadded(SALT)}$${unpadded(derived('sha256')).replaceAll('+', '.')}`],
    ['Django', django('sha256')],
    ['Django with SHA-1', django('sha1')],
    ['Keycloak with SHA-256', keycloak('pbkdf2-sha256', base64(derived('sha256', 1000, SALT, 64)))],
    ['Keycloak with SHA-512', keycloak('pbkdf2-sha512', base64(derived('sha512', 1000, SALT, 64)))],
    ['Keycloak with SHA-1', keycloak('pbkdf2', base64(derived('sha1', 1000, SALT, 64)))],
    ['Keycloak with argon2', await keycloakArgon2()],
    ['ASP.NET Core Identity 3', aspNet('sha512')],
    ['ASP.NET Core Identity 3, older', aspNet('sha256')],
    ['ASP.NET Identity 2', base64(Buffer.concat([Buffer.alloc(1), SALT, derived('sha1')]))],
  ])('%s: the old password is right, others are wrong', async ([, hash]) => {
    expect(isSupportedHash(hash)).toBe(true)
    expect(await verifyImported(hash, PASSWORD)).toBe(true)
    for (const wrong of ['', `${PASSWORD} `, 'something else']) expect(await verifyImported(hash, wrong)).toBe(false)
  })

  // RFC 6070 and its continuation for SHA-256 in RFC 7914 11.
  test.for<[string, string, string]>([
    [
      'SHA-1',
      `$pbkdf2$i=4096$${unpadded(Buffer.from('saltSALTsaltSALTsaltSALTsaltSALTsalt'))}$`,
      '3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038',
    ],
    [
      'SHA-256',
      `$pbkdf2-sha256$i=1$${unpadded(Buffer.from('salt'))}$`,
      '55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783',
    ],
  ])('the vectors of the standards, %s', async ([name, head, hex]) => {
    const password = name === 'SHA-1' ? 'passwordPASSWORDpassword' : 'passwd'
    expect(await verifyImported(head + unpadded(Buffer.from(hex, 'hex')), password)).toBe(true)
  })
})

const P = (iterations: number, hash = 'A'.repeat(43), salt = 'c2FsdA') =>
  `$pbkdf2-sha256$i=${iterations}$${salt}$${hash}`

test('the most work is within bounds, and takes a slot for costly hashes', () => {
  expect([P(1_200_000), P(1_200_001), P(5_000_000)].map(isCostly)).toEqual([false, true, true])
  expect(isSupportedHash(P(5_000_000))).toBe(true)
  // Three times the work of SHA-256.
  const sha512 = (iterations: number) => `$pbkdf2-sha512$i=${iterations}$${unpadded(SALT)}$${'A'.repeat(86)}`
  expect([400_000, 400_001, 1_666_666].map((iterations) => isCostly(sha512(iterations)))).toEqual([false, true, true])
  expect([1_666_666, 1_666_667].map((iterations) => isSupportedHash(sha512(iterations)))).toEqual([true, false])
})

test.for<[string, string]>([
  ['over the bound', P(5_000_001)],
  ['of two blocks over the bound', P(2_500_001, 'A'.repeat(86))],
  ['of no iterations', P(0)],
  ['of more iterations than there are digits for', P(999_999_999)],
  ['without a salt', P(1000, undefined, '')],
  ['with a salt of 129 bytes', P(1000, undefined, 'A'.repeat(172))],
  ['with 15 bytes of hash', P(1000, 'A'.repeat(20))],
  ['with 129 bytes of hash', P(1000, 'A'.repeat(172))],
  ['whose length is another than it says', P(1000).replace('i=1000', 'i=1000,l=64')],
  ['with another digest', P(1000).replace('sha256', 'md5')],
  ['Django without a hash', 'pbkdf2_sha256$1000$salt$'],
  ['Django over the bound', django('sha256', 'salt', 5_000_001)],
  ['Django with more behind it', `${django('sha256')}\n`],
  ['ASP.NET over the bound', aspNet('sha256', { iterations: 4_294_967_295 })],
  ['ASP.NET with a salt beyond its end', aspNet('sha256', { size: 4_294_967_295 })],
  ['ASP.NET with all salt and no hash', aspNet('sha256', { size: SALT.length + 32 })],
  ['ASP.NET with another digest', base64(Buffer.concat([Buffer.from([1, 0, 0, 0, 3]), Buffer.alloc(56)]))],
  ['ASP.NET of another version', base64(Buffer.concat([Buffer.alloc(1), Buffer.alloc(50)]))],
  ['Keycloak over the bound', keycloak('pbkdf2-sha256', base64(derived('sha256')), { hashIterations: 5_000_001 })],
  ['Keycloak with text for iterations', keycloak('pbkdf2-sha256', 'AAAA', { hashIterations: '1,l=1$x$' })],
  ['Keycloak with another algorithm', keycloak('bcrypt', base64(derived('sha256')))],
  ['Keycloak without secrets', '{"type":"password","credentialData":"{}"}'],
  ['JSON that is none', '{"secretData":'],
  ['JSON of nothing', '{}'],
])('refused, and no password verifies: %s', async ([, hash]) => {
  expect(isSupportedHash(hash)).toBe(false)
  expect(await verifyImported(hash, PASSWORD)).toBe(false)
})
